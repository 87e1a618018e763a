package coverage_test

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/scenarios"
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
	covered := coverage.Statements(statements, all)
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
