package coverage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// Every statement that a scenario covers exists, and the table of statements names each scenario that covers one.
func TestStatements(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	statements, err := scenarios.Statements()
	if err != nil {
		t.Fatal(err)
	}
	covered, err := coverage.Statements(statements, all, mutants.Subjects())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, id := range s.Covers {
			if !slices.ContainsFunc(statements, func(x coverage.Statement) bool { return x.ID == id }) {
				t.Errorf("scenario %s covers %s, which is no statement: see scenarios/statements.yaml", s.Name, id)
			}
		}
		if len(s.Covers) > 0 && !slices.ContainsFunc(covered, func(c coverage.Covered) bool { return slices.Contains(c.Scenarios, s.Name) }) {
			t.Errorf("the table of statements does not name %s", s.Name)
		}
	}
}

// Where statements are judged follows from their wrong subjects. A citation adds a place only where an invariant judges the same kind of cluster.
func TestPlaces(t *testing.T) {
	quick := &scenario.Scenario{Name: "quick", Covers: []string{"S0-01", "S0-02", "S0-03"}}
	slow := &scenario.Scenario{Name: "slow", Covers: []string{"S0-01"}, Labels: []string{"slow"}}
	onKind := &scenario.Scenario{Name: "on-kind", Covers: []string{"S0-01"}, OnlyKind: "a kubelet"}
	operated := &scenario.Scenario{Name: "operated", Covers: []string{"S0-01"}, Topology: scenario.Topology{Lifecycle: scenario.LifecycleOperator}}
	subjects := map[string]coverage.Subject{"a": {Scenario: "slow"}, "b": {Scenario: "operated"}, "c": {}}
	catch := func(wrong, by string) []coverage.Catch { return []coverage.Catch{{Wrong: wrong, By: by}} }
	all, err := coverage.Statements([]coverage.Statement{
		{ID: "S0-01", CaughtBy: catch("a", "CADENCE")},
		{ID: "S0-01", CaughtBy: catch("a", "steps[1].expect")},
		{ID: "S0-01", CaughtBy: catch("b", "SWITCH-ORDER")},
		{ID: "S0-02", CaughtBy: catch("c", "KMS2-X"), Weak: "x"},
		{ID: "S0-02", CaughtBy: catch("d", "a/b.TestX")},
		{ID: "S0-03", Outside: "x"},
	}, []*scenario.Scenario{slow, onKind, quick, operated}, subjects)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, fmt.Sprint(c.Status, c.Gate, c.Night, len(c.Scenarios)))
	}
	want := []string{
		"covered[sim local kind] [] 4", "covered[sim] [local kind] 4", "covered[sim local] [kind] 4",
		"weak[plugin] [] 1", "covered[test] [] 1", "outside[] [] 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
