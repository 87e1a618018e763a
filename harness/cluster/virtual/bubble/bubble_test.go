package bubble

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
)

// drawn is what chance gives in an hour of virtual time.
func drawn(t *testing.T, seed uint64) (out string) {
	t.Helper()
	Test(t, seed, func(*testing.T) {
		began := time.Now()
		b := make([]byte, 4)
		_, _ = rand.Read(b)
		time.Sleep(time.Hour)
		out = fmt.Sprint(began.Equal(Begin()), time.Since(began), b, uuid.New(), wait.Jitter(time.Second, 1))
	})
	return out
}

// A seed decides everything, in whatever order bubbles run.
func TestSeeds(t *testing.T) {
	a, other, again := drawn(t, 1), drawn(t, 2), drawn(t, 1)
	if a != again || a == other || !strings.HasPrefix(a, "true 1h0m0s") {
		t.Errorf("%s\n%s\n%s", a, other, again)
	}
}

// Bubbles that are begun side by side do not share what their seeds decide.
func TestSideBySide(t *testing.T) {
	alone := drawn(t, 1)
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			if got := drawn(t, 1); got != alone {
				t.Errorf("%s, alone %s", got, alone)
			}
		})
	}
}

// TestEnvironment: what a program sets is gone in the next bubble, and what was there is there.
func TestEnvironment(t *testing.T) {
	const was, isNew = "KMSHARNESS_BUBBLE_WAS", "KMSHARNESS_BUBBLE_NEW"
	t.Setenv(was, "a=b")
	Test(t, 1, func(*testing.T) {
		os.Setenv(was, "other")
		os.Setenv(isNew, "1")
	})
	if value, set := os.LookupEnv(isNew); set || os.Getenv(was) != "a=b" {
		t.Errorf("%s=%s, %s=%s", was, os.Getenv(was), isNew, value)
	}
}

// child names what this test does when it is an ordinary program.
const child = "KMSHARNESS_BUBBLE_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(child); what != "" {
		Main(func() {
			var errs []error
			for seed := range uint64(3) {
				errs = append(errs, Run(seed, func() { time.Sleep(time.Hour); fmt.Println(seed, time.Since(Begin())) }))
			}
			if what == "panic" {
				errs = append(errs, Run(1, func() { go panic("a program of the bubble"); time.Sleep(time.Second) }))
			}
			if errors.Join(errs...) != nil {
				os.Exit(1)
			}
			os.Exit(7)
		})
	}
	os.Exit(m.Run())
}

func TestInAnOrdinaryProgram(t *testing.T) {
	for what, want := range map[string]struct {
		code int
		says string
	}{"exit": {7, ""}, "panic": {2, "a program of the bubble"}} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), child+"="+what)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // it has an exit code
		if cmd.ProcessState.ExitCode() != want.code || stdout.String() != "0 1h0m0s\n1 1h0m0s\n2 1h0m0s\n" || !strings.Contains(stderr.String(), want.says) {
			t.Errorf("%s: exit %d, %q, %q", what, cmd.ProcessState.ExitCode(), &stdout, &stderr)
		}
	}
}

// A clock that stands still is noticed, and who waits is named; one that goes is not.
func TestStalled(t *testing.T) {
	var said bytes.Buffer
	exited := make(chan int, 1)
	var outside sync.Mutex
	outside.Lock()
	beat, end := watch(50*time.Millisecond, processorTime, &said, func(code int) { exited <- code; outside.Unlock() })
	defer end()
	t.Run("", func(t *testing.T) {
		Test(t, 1, func(*testing.T) {
			beat()
			holdsUp(&outside)
		})
	})
	if code := <-exited; code != ExitStalled || !strings.Contains(said.String(), "holdsUp") || strings.Count(said.String(), "synctest bubble") != 1 {
		t.Errorf("exit %d: %s", code, &said)
	}
}

func holdsUp(outside *sync.Mutex) {
	outside.Lock()
	defer outside.Unlock()
}

// A goroutine that could go on, and does not for want of a processor, does not stall its bubble; one that computes without end does.
func TestStarved(t *testing.T) {
	var said bytes.Buffer
	var asked atomic.Int64
	const enough = 8 // it begins with two, and asks each time when the clock has stood still for long
	exited := make(chan int, 1)
	used := func() time.Duration {
		if asked.Add(1) < enough {
			return 0
		}
		return time.Hour
	}
	beat, end := watch(20*time.Millisecond, used, &said, func(code int) { exited <- code })
	defer end()
	t.Run("", func(t *testing.T) {
		Test(t, 1, func(*testing.T) {
			beat()
			for len(exited) == 0 {
				runtime.Gosched()
			}
		})
	})
	if asked := asked.Load(); asked < enough || !strings.Contains(said.String(), "TestStarved") {
		t.Errorf("asked for the time %d times, expected %d: %s", asked, enough, &said)
	}
}
