package swarm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// workerIs says what this program is when it is a worker: one that works, that panics at seed 2, or that hangs at every seed.
const workerIs = "KMSHARNESS_SWARM_WORKER"

// troubled is a backend that does not survive some seeds.
type troubled struct {
	*virtual.Backend
	what string
}

func (b troubled) Within(ctx context.Context, seed int64, f func(ctx context.Context)) error {
	switch {
	case b.what == "panics" && seed == 2:
		panic("a program is wrong")
	case b.what == "hangs":
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return b.Backend.Within(ctx, seed, f)
}

func serve(what string) {
	ctx, cancel := context.WithCancel(context.Background())
	if what == "hangs" {
		time.AfterFunc(time.Minute, cancel)
	}
	o := swarm.Options{Backend: troubled{virtual.New(virtual.Options{}), what}}
	if err := swarm.Serve(ctx, o, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func inProcesses(ctx context.Context, t *testing.T, what string, done func(swarm.Seed)) (out string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out = t.TempDir()
	return out, swarm.Run(ctx, swarm.Options{From: 1, To: seeds, Jobs: 2, Out: out, Backend: virtual.New(virtual.Options{}), Done: done,
		Worker: func(ctx context.Context) *exec.Cmd {
			c := exec.CommandContext(ctx, self)
			c.Env = append(os.Environ(), workerIs+"="+what)
			return c
		}})
}

// Processes say what this one says.
func TestWorkers(t *testing.T) {
	here, _ := simulate(t, virtual.Options{})
	all := swarm.NewSummary(swarm.Range{From: 1, To: seeds}, nil)
	if _, err := inProcesses(t.Context(), t, "works", all.Add); err != nil {
		t.Fatal(err)
	}
	if all.Hash != here.Hash || all.Passed != seeds || all.Events != here.Events || fmt.Sprint(all.Invariants, all.Pairs) != fmt.Sprint(here.Invariants, here.Pairs) {
		t.Errorf("%d passed, %d events, %s; here %d, %s", all.Passed, all.Events, all.Hash, here.Events, here.Hash)
	}
}

// A seed that ends its process could not run, and what the process wrote is kept. The others are simulated.
func TestLostWorker(t *testing.T) {
	var lost []swarm.Seed
	passed := 0
	out, err := inProcesses(t.Context(), t, "panics", func(s swarm.Seed) {
		if s.Result.Status == result.Passed {
			passed++
			return
		}
		lost = append(lost, s)
	})
	if err != nil || passed != seeds-1 || len(lost) != 1 || lost[0].Seed != 2 || lost[0].Result.Status != result.CouldNotRun || !strings.Contains(lost[0].Result.Text(), "exit status 2") {
		t.Fatalf("%v, %d passed, others %+v", err, passed, lost)
	}
	text, err := os.ReadFile(filepath.Join(out, "swarm-2", "stderr.log"))
	if err != nil || !strings.Contains(string(text), "a program is wrong") {
		t.Errorf("%s, %v", text, err)
	}
	kept, err := os.ReadFile(lost[0].File)
	if err != nil || !slices.Equal(kept, file(t, swarm.Plan{}, 2)) {
		t.Errorf("the scenario file is not that of the seed: %v", err)
	}
}

// An interrupt ends the processes, too.
func TestInterruptedWorkers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	began := time.Now()
	out, err := inProcesses(ctx, t, "hangs", func(s swarm.Seed) { t.Errorf("seed %d is said to be done", s.Seed) })
	if left, _ := os.ReadDir(out); !errors.Is(err, context.Canceled) || len(left) > 0 || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v, left %v", err, time.Since(began), left)
	}
}
