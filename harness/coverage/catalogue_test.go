package coverage_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

// docs/catalogue.md is what the scenario files say. It also means that every statement that a scenario covers exists, and that every
// scenario passes on the simulator, if that has a model of what it needs.
func TestCatalogueIsDocumented(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	statements, err := scenarios.Statements()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := coverage.Run(t.Context(), all, coverage.Options{Jobs: runtime.NumCPU()})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if t := e.Scenario.Topology; e.Status == result.NotSupported && (t.ByOperator() || len(t.Aggregated()) > 0) {
			continue // an operator acts on real control planes, and the simulation has one kind of API server
		}
		if slices.ContainsFunc(e.Scenario.Actions(), func(a scenario.Action) bool { return a.Verb() == scenario.VerbSilence }) {
			continue // harness/cluster/virtual runs it
		}
		if e.Status != result.Passed {
			t.Errorf("%s: %s on the simulator", e.Scenario.Name, e.Status)
		}
	}
	text, err := markdown(statements, entries)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "docs", "catalogue.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if published, err := os.ReadFile(file); err != nil || string(published) != text {
		t.Errorf("%s is not what the scenario files say (%v): run UPDATE=1 go test ./harness/coverage", file, err)
	}
}
