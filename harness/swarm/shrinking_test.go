package swarm_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/utils/clock"

	aggregator "github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// staleIsHealthy is an aggregator that takes every report for one of this instant.
func staleIsHealthy(in aggregator.Input, m aggregator.Memory) aggregator.Decision {
	reports := map[string]aggregator.Report{}
	for node, r := range in.Observed.Reports {
		r.Entries = slices.Clone(r.Entries)
		for i := range r.Entries {
			r.Entries[i].LastChecked = in.Now
		}
		reports[node] = r
	}
	in.Observed.Reports = reports
	return aggregator.Step(in, m)
}

// A wrong aggregator is found, and what shows it is a handful of steps that fail in the same way when they are run as a file.
func TestShrink(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	wrong := sim.New(sim.Options{SSA: store.Model, Cores: sim.Cores{Decide: staleIsHealthy}})
	out := t.TempDir()
	all := swarm.NewSummary(swarm.Range{From: 1, To: 12}, nil)
	err := swarm.Run(context.Background(), swarm.Options{From: 1, To: 12, Jobs: 2, Out: out, Done: all.Add, Backend: wrong})
	if err != nil {
		t.Fatal(err)
	}
	shrinker := swarm.Shrinker{Backends: []backend.Backend{sim.New(sim.Options{SSA: store.Model}), wrong}, Out: out}
	if err := shrinker.Failed(context.Background(), all, swarm.Plan{}); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all.Failed, func(f swarm.Failed) bool { return f.Shrunk != "" && slices.Contains(f.Violated, "STALE-UNKNOWN") })
	if i < 0 {
		t.Fatalf("no seed found it, or was shrunk: %+v", all.Failed)
	}
	short := all.Failed[i]
	if short.Steps > 5 {
		t.Errorf("%d steps are left, expected 5 at most", short.Steps)
	}
	for name, c := range map[string]struct {
		backend *sim.Backend
		want    result.Status
	}{"wrong": {wrong, result.Failed}, "right": {sim.New(sim.Options{SSA: store.Model}), result.Passed}} {
		if r := runFile(t, c.backend, short.Shrunk, short.Seed); r.Status != c.want || c.want == result.Failed && !slices.ContainsFunc(r.Failures, func(f result.Failure) bool { return f.ID == "STALE-UNKNOWN" }) {
			text, _ := os.ReadFile(short.Shrunk)
			t.Errorf("on the %s aggregator it %s, expected that it %s\n%s\n%s", name, r.Status, c.want, r.Text(), text)
		}
	}
	if left, err := filepath.Glob(filepath.Join(out, "*-min")); err != nil || len(left) > 0 {
		t.Errorf("shrinking left %v, %v", left, err)
	}
}

func runFile(t *testing.T, b *sim.Backend, file string, seed int64) result.Result {
	t.Helper()
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Execute(context.Background(), b, all[0], engine.Execution{Out: t.TempDir(), Artifacts: engine.ArtifactsNever,
		Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: seed}})
}
