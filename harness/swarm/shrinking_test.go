package swarm_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// A wrong aggregator is found, and what shows it is a handful of steps that fail in the same way when they are run as a file.
func TestShrink(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	wrong := virtual.New(mutant(t, "stale-is-healthy"))
	out := t.TempDir()
	all := swarm.NewSummary(swarm.Range{From: 1, To: 12}, nil)
	err := swarm.Run(context.Background(), swarm.Options{From: 1, To: 12, Out: out, Done: all.Add, Backend: wrong})
	if err != nil {
		t.Fatal(err)
	}
	shrinker := swarm.Shrinker{Backends: []backend.Backend{virtual.New(virtual.Options{}), wrong}, Out: out}
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
		backend *virtual.Backend
		want    result.Status
	}{"wrong": {wrong, result.Failed}, "right": {virtual.New(virtual.Options{}), result.Passed}} {
		if r := runFile(t, c.backend, short.Shrunk, short.Seed); r.Status != c.want || c.want == result.Failed && !slices.ContainsFunc(r.Failures, func(f result.Failure) bool { return f.ID == "STALE-UNKNOWN" }) {
			text, _ := os.ReadFile(short.Shrunk)
			t.Errorf("on the %s aggregator it %s, expected that it %s\n%s\n%s", name, r.Status, c.want, r.Text(), text)
		}
	}
	if left, err := filepath.Glob(filepath.Join(out, "*-min")); err != nil || len(left) > 0 {
		t.Errorf("shrinking left %v, %v", left, err)
	}
}

func runFile(t *testing.T, b *virtual.Backend, file string, seed int64) result.Result {
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
