package mutants_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

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
		for _, id := range unmatched(m.Caught, s) {
			t.Errorf("%s: nothing in a run of %s can fail as %s", m.Name, m.Scenario, id)
		}
		if lacks := lacks(t, m, s); len(lacks) > 0 {
			t.Errorf("%s: %v", m.Name, lacks)
		}
	}
	for _, f := range []mutants.Family{mutants.Reporter, mutants.Aggregator, mutants.Plugin, mutants.Operator, mutants.Cluster} {
		if families[f] == 0 {
			t.Errorf("no mutant of the family %s", f)
		}
	}
}

// unmatched returns the ids that are neither invariants nor steps of a scenario. TestSimulated and make mutants compare all others with a run.
func unmatched(ids []string, s *scenario.Scenario) []string {
	known := append(steps(s.Steps, "steps"), "before.expect", "after.expect", "after.holds")
	for _, i := range check.Invariants() {
		known = append(known, i.ID)
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		id, _, _ = strings.Cut(id, "#") // the round of a repetition
		return slices.Contains(known, id)
	})
}

// steps returns the ids under which actions and expectations fail.
func steps(all []scenario.Step, id string) (ids []string) {
	for n, s := range all {
		id := fmt.Sprintf("%s[%d]", id, n)
		switch {
		case s.Action != nil:
			ids = append(ids, id)
		case s.Expect != nil:
			ids = append(ids, id+"."+s.Expect.Mode.Keyword())
		case s.Parallel != nil:
			ids = append(ids, steps(s.Parallel, id+".parallel")...)
		case s.Repeat != nil:
			ids = append(append(ids, id+".repeat.until"), steps(s.Repeat.Steps, id+".repeat")...)
		}
	}
	return ids
}

func TestIDsThatCannotMatch(t *testing.T) {
	s := find(t, "plugin-hangs") // inject, expect, …
	good := []string{"CADENCE", "before.expect", "after.holds", "steps[0]", "steps[1].expect", "steps[1].expect#2"}
	bad := []string{"steps[0].expect", "steps[1]", "steps[1].never", "steps[99].expect", "KMSPluginDegraded", "after.expects"}
	if got := unmatched(append(good, bad...), s); !slices.Equal(got, bad) {
		t.Errorf("%q, want %q", got, bad)
	}
}

// lacks is what its backend cannot do of the scenario, or does not have of the mutant.
func lacks(t *testing.T, m mutants.Mutant, s *scenario.Scenario) []string {
	if m.Simulated() {
		return virtual.New(m.Virtual()).Unsupported(s)
	}
	dir := t.TempDir()
	if m.Program != "" {
		// A mutant of its own, or a good program with the wrong flags.
		_, wrong := os.Stat(filepath.Join("cmd", m.Program, "main.go"))
		_, good := os.Stat(filepath.Join("../../cmd", m.Program, "main.go"))
		if wrong != nil && good != nil {
			t.Errorf("%s: %v", m.Name, wrong)
		}
		if err := os.WriteFile(filepath.Join(dir, m.Program), nil, 0o755); err != nil { // not built, but found
			t.Fatal(err)
		}
	}
	b, err := local.New(m.Options(dir))
	if err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return b.Unsupported(s)
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

// TestStatementsOfInvariants: what invariants are said to judge exists, and a mutant that is known to break a statement is found to.
func TestStatementsOfInvariants(t *testing.T) {
	statements, err := scenarios.Statements()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range statements {
		known[s.ID] = true
	}
	by := trial.Breakers(mutants.All(), catalogue(t))
	for id := range by {
		if !known[id] {
			t.Errorf("there is no statement %s", id)
		}
	}
	if !slices.Contains(by["S0-07"], "queue-and-flush") || slices.Contains(by["S0-19"], "queue-and-flush") {
		t.Errorf("a queue breaks S0-07 and not S0-19: %v, %v", by["S0-07"], by["S0-19"])
	}
	for name, about := range mutants.StepsAbout() {
		for _, id := range about {
			if !slices.Contains(by[id], name) {
				t.Errorf("%s: expected a mutant of this name, and a scenario that covers %s", name, id)
			}
		}
	}
}

// beyond are the invariants that no mutant can break, and why.
func beyond() map[string]string {
	return map[string]string{
		"NO-EXIT":          "a simulated program does not end by itself; ends-at-once does on a real control plane",
		"NO-FORGED-EXCUSE": "it is about events of the harness's own recorders, which no subject can write any more; known-bad histories have forged ones",
		"NOTHING-RAN":      "it is about the harness. A subject that does nothing at all still leaves the actions and expectations of the scenario in the history",
	}
}
