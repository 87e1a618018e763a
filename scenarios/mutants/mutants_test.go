package mutants_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// limit is for one mutant: a boot, a scenario of some ten seconds, and room for a busy machine.
const limit = 3 * time.Minute

// TestTable: what an entry names exists, and every family has one.
func TestTable(t *testing.T) {
	var known []string
	for _, i := range check.Invariants() {
		known = append(known, i.ID)
	}
	families := map[mutants.Family]int{}
	for _, m := range mutants.All() {
		families[m.Family]++
		if s := find(t, m.Scenario); slices.ContainsFunc(s.Excused, func(e scenario.Excuse) bool { return slices.Contains(m.Caught, e.Invariant) }) {
			t.Errorf("%s: scenario %s excuses what must catch it", m.Name, m.Scenario)
		}
		if len(m.Caught) == 0 || m.Mistake == "" {
			t.Errorf("%s: expected a mistake and at least one invariant", m.Name)
		}
		for _, id := range m.Caught {
			if !slices.Contains(known, id) {
				t.Errorf("%s: there is no invariant %s", m.Name, id)
			}
		}
		if m.Program != "" {
			if _, err := os.Stat(filepath.Join("cmd", m.Program, "main.go")); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
		b, err := local.New(m.Options("bin"))
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if lacks := b.Lacks(find(t, m.Scenario)); len(lacks) > 0 {
			t.Errorf("%s: %v", m.Name, lacks)
		}
	}
	for _, f := range []mutants.Family{mutants.Reporter, mutants.Aggregator, mutants.Plugin} {
		if families[f] == 0 {
			t.Errorf("no mutant of the family %s", f)
		}
	}
}

// TestMutantsAreCaught runs every mutant on a real control plane. KMSHARNESS_BIN has the programs, the mutants' among them.
func TestMutantsAreCaught(t *testing.T) {
	if os.Getenv("KMSHARNESS_MUTANTS") != "1" {
		t.Skip("mutants run on the local backend, half a minute each: use make mutants")
	}
	dir, out := os.Getenv(live.EnvPrograms), os.Getenv("KMSHARNESS_OUT")
	if dir == "" {
		t.Fatalf("%s is not set: expected the directory with the programs; use make mutants", live.EnvPrograms)
	}
	if out == "" {
		out = t.TempDir()
	}
	for _, m := range mutants.All() {
		t.Run(m.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			caught(t, m, execute(ctx, t, m, dir, filepath.Join(out, m.Name)))
		})
	}
}

func execute(ctx context.Context, t *testing.T, m mutants.Mutant, dir, out string) report.Result {
	b, err := local.New(m.Options(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("close the backend: %v", err)
		}
	})
	return engine.Execute(ctx, b, find(t, m.Scenario), engine.Execution{
		Options: engine.Options{
			Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1,
			Reproduce: m.Command(dir), Progress: func(line string) { t.Log(line) },
		},
		Out: out,
	})
}

// caught demands a failure that names every expected invariant, when it was violated, and how to see it again.
func caught(t *testing.T, m mutants.Mutant, r report.Result) {
	text := r.Text()
	if r.Status != report.Failed {
		t.Fatalf("%s\nis %s, expected failed by %v:\n%s", m.Mistake, r.Status, m.Caught, text)
	}
	for _, id := range m.Caught {
		i := slices.IndexFunc(r.Failures, func(f report.Failure) bool { return f.ID == id })
		if i < 0 || r.Failures[i].At.IsZero() || !strings.Contains(text, fmt.Sprintf("at +%.3fs", r.Failures[i].Offset.Seconds())) {
			t.Errorf("expected %s with its instant:\n%s", id, text)
		}
	}
	if r.Reproduce == "" || !strings.Contains(text, r.Reproduce) {
		t.Errorf("expected how to reproduce it, %q:\n%s", r.Reproduce, text)
	}
	t.Logf("caught as expected by %v:\n%s", m.Caught, text)
}

func find(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %s", name)
	}
	return all[i]
}
