package swarm_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	aggregator "github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(workerIs); what != "" {
		serve(what)
	}
	goleak.VerifyTestMain(m)
}

func simulate(t *testing.T, jobs int, cores sim.Cores) (*swarm.Summary, string) {
	t.Helper()
	out := t.TempDir()
	all := swarm.NewSummary(swarm.Range{From: 1, To: 6}, nil)
	err := swarm.Run(context.Background(), swarm.Options{From: 1, To: 6, Jobs: jobs, Out: out, Done: all.Add,
		Backend: sim.New(sim.Options{SSA: store.Model, Cores: cores})})
	if err != nil {
		t.Fatal(err)
	}
	return all, out
}

// How many seeds are simulated at the same time does not matter, and what passed leaves nothing behind.
func TestJobsDoNotMatter(t *testing.T) {
	one, out := simulate(t, 1, sim.Cores{})
	three, _ := simulate(t, 3, sim.Cores{})
	if one.Hash != three.Hash || one.Seeds != 6 || len(one.Failed) != 0 {
		t.Errorf("%d seeds, %d failed, %s and %s", one.Seeds, len(one.Failed), one.Hash, three.Hash)
	}
	left, err := os.ReadDir(out)
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	var text bytes.Buffer
	if err := one.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"6 of 6 seeds passed", "no seed reached it", string(one.Hash)} {
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
	silent := sim.Cores{Decide: func(in aggregator.Input, m aggregator.Memory) aggregator.Decision {
		d := aggregator.Step(in, m)
		for i := range d.Rollups {
			d.Rollups[i].Message = ""
		}
		return d
	}}
	all, _ := simulate(t, 2, silent)
	if len(all.Failed) == 0 {
		t.Fatal("rollups without a word passed")
	}
	if _, err := os.Stat(all.Failed[0].Scenario); err != nil {
		t.Error(err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := swarm.Run(ctx, swarm.Options{From: 1, To: 1000, Jobs: 2, Out: t.TempDir(), Done: func(swarm.Seed) {}, Backend: sim.New(sim.Options{})})
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
	err := swarm.Run(ctx, swarm.Options{From: 1, To: 1000, Jobs: 3, Out: out, Backend: sim.New(sim.Options{SSA: store.Model}), Done: func(s swarm.Seed) {
		all.Add(s)
		cancel()
	}})
	left, _ := os.ReadDir(out)
	if !errors.Is(err, context.Canceled) || len(all.Failed) > 0 || all.Passed == 0 || len(left) > 0 {
		t.Errorf("%v: %d passed, failed %+v, left %v; expected some that passed and nothing else", err, all.Passed, all.Failed, left)
	}
}
