package swarm_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/swarm"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(workerIs); what != "" {
		bubble.Main(func() { serve(what) })
	}
	goleak.VerifyTestMain(m)
}

// seeds of most tests.
const seeds = 3

// mutant is a subject that is wrong.
func mutant(t *testing.T, name string) virtual.Options {
	t.Helper()
	m, err := mutants.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return m.Virtual()
}

func simulate(t *testing.T, o virtual.Options) (*swarm.Summary, string) {
	t.Helper()
	out := t.TempDir()
	all := swarm.NewSummary(swarm.Range{From: 1, To: seeds}, nil)
	err := swarm.Run(context.Background(), swarm.Options{From: 1, To: seeds, Out: out, Done: all.Add, Backend: virtual.New(o)})
	if err != nil {
		t.Fatal(err)
	}
	return all, out
}

// What passed leaves nothing behind.
func TestPassed(t *testing.T) {
	one, out := simulate(t, virtual.Options{})
	if one.Seeds != seeds || len(one.Failed) != 0 {
		t.Errorf("%d seeds, %d failed", one.Seeds, len(one.Failed))
	}
	left, err := os.ReadDir(out)
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	var text bytes.Buffer
	if err := one.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 of 3 seeds passed", "no seed reached it", string(one.Hash)} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, text.String())
		}
	}
}

// A subject that is wrong is found, and its scenario kept.
func TestWrongSubjectIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	all, _ := simulate(t, mutant(t, "every-third-interval"))
	if len(all.Failed) == 0 {
		t.Fatal("a reporter that writes every third interval passed")
	}
	if _, err := os.Stat(all.Failed[0].Scenario); err != nil {
		t.Error(err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := swarm.Run(ctx, swarm.Options{From: 1, To: 1000, Out: t.TempDir(), Done: func(swarm.Seed) {}, Backend: virtual.New(virtual.Options{})})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected that it was interrupted", err)
	}
}

// A seed that is under way when somebody interrupts is not counted: it has neither passed nor failed.
func TestInterruptedSeedsAreNotCounted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := t.TempDir()
	all := swarm.NewSummary(swarm.Range{From: 1, To: 1000}, nil)
	err := swarm.Run(ctx, swarm.Options{From: 1, To: 1000, Out: out, Backend: virtual.New(virtual.Options{}), Done: func(s swarm.Seed) {
		all.Add(s)
		cancel()
	}})
	left, _ := os.ReadDir(out)
	if !errors.Is(err, context.Canceled) || len(all.Failed) > 0 || all.Passed == 0 || len(left) > 0 {
		t.Errorf("%v: %d passed, failed %+v, left %v; expected some that passed and nothing else", err, all.Passed, all.Failed, left)
	}
}
