package mutants_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// beyond are the invariants that no mutant can break, and why.
func beyond() map[string]string {
	return map[string]string{
		"NOTHING-RAN": "it is about the harness: a subject that does nothing still leaves the actions and expectations of the scenario",
	}
}

// TestList: what an entry names exists, and every family has some.
func TestList(t *testing.T) {
	families, names := map[mutants.Family]int{}, map[string]bool{}
	for _, m := range mutants.All() {
		if families[m.Family]++; names[m.Name] {
			t.Errorf("%s: there are two of this name", m.Name)
		}
		names[m.Name] = true
		if len(m.Caught) == 0 || m.Mistake == "" {
			t.Errorf("%s: expected a mistake and what catches it", m.Name)
		}
		s := find(t, m.Scenario)
		if slices.ContainsFunc(s.Excused, func(e scenario.Excuse) bool { return slices.Contains(m.Caught, e.Invariant) }) {
			t.Errorf("%s: scenario %s excuses what must catch it", m.Name, m.Scenario)
		}
		if lacks := lacks(t, m, s); len(lacks) > 0 {
			t.Errorf("%s: %v", m.Name, lacks)
		}
	}
	for _, f := range []mutants.Family{mutants.Reporter, mutants.Aggregator, mutants.Plugin} {
		if families[f] == 0 {
			t.Errorf("no mutant of the family %s", f)
		}
	}
}

// lacks is what its backend cannot do of the scenario, or does not have of the mutant.
func lacks(t *testing.T, m mutants.Mutant, s *scenario.Scenario) []string {
	if m.Simulated() {
		return sim.New(m.Subject()).Lacks(s)
	}
	if m.Program != "" {
		if _, err := os.Stat(filepath.Join("cmd", m.Program, "main.go")); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	b, err := local.New(m.Options("bin"))
	if err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return b.Lacks(s)
}

// TestEveryInvariantCanFail: each is among what catches a simulated mutant, unless none can reach it.
func TestEveryInvariantCanFail(t *testing.T) {
	by := map[string]int{}
	for _, m := range mutants.All() {
		for _, id := range m.Caught {
			if m.Simulated() {
				by[id]++
			}
		}
	}
	for _, i := range check.Invariants() {
		why, unreachable := beyond()[i.ID]
		if unreachable == (by[i.ID] > 0) {
			t.Errorf("%s: %d mutants are caught by it; beyond their reach: %q", i.ID, by[i.ID], why)
		}
	}
}

func find(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	all := catalogue(t)
	i := slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %s", name)
	}
	return all[i]
}

// load reads the catalogue once: nobody changes it.
var load = sync.OnceValues(scenarios.Load)

func catalogue(t *testing.T) []*scenario.Scenario {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
