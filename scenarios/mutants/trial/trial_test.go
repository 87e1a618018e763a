package trial_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

func good() virtual.Options { return virtual.Options{} }

// idle is an aggregator that does nothing.
func idle() virtual.Options {
	programs := virtual.Programs()
	programs["kms-health-aggregator"] = func(ctx context.Context, _ host.Host, _ []string, _, _ io.Writer) int {
		<-ctx.Done()
		return 0
	}
	return virtual.Options{Programs: programs}
}

// What an earlier trial left is gone, so that nothing is in the way of a first try that is kept.
func TestTrialBeginsInAnEmptyFolder(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	old := filepath.Join(out, "good", "steady-state", "inconclusive")
	if err := os.MkdirAll(old, 0o755); err != nil {
		t.Fatal(err)
	}
	trial.Run(t.Context(), mutants.Mutant{Name: "good", Virtual: good, Scenario: "steady-state"}, trial.Options{Scenarios: all, Out: out})
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("%s: %v, expected it to be gone", old, err)
	}
}

// TestSurvivors: a mutant is killed by what it names for itself, and by nothing else.
func TestSurvivors(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	broken := func() virtual.Options { return virtual.Options{PluginArgs: []string{"--fault=of-no-kind"}} }
	var outcomes []trial.Outcome
	for _, c := range []struct {
		mutant   mutants.Mutant
		survived string // a part of why; empty if killed
	}{
		{mutants.Mutant{Name: "killed", Virtual: idle, Scenario: "steady-state", Caught: []string{"ROLLUP-TRUTH"}}, ""},
		{mutants.Mutant{Name: "good", Virtual: good, Scenario: "steady-state", Caught: []string{"ROLLUP-TRUTH"}}, "the run is passed"},
		{mutants.Mutant{Name: "by-another", Virtual: idle, Scenario: "steady-state", Caught: []string{"FORMAT"}}, "expected FORMAT to fail"},
		{mutants.Mutant{Name: "by-half", Virtual: idle, Scenario: "steady-state", Caught: []string{"ROLLUP-TRUTH", "FORMAT"}}, "expected ROLLUP-TRUTH, FORMAT to fail"},
		{mutants.Mutant{Name: "by-nothing", Virtual: idle, Scenario: "steady-state"}, "to fail"},
		{mutants.Mutant{Name: "no-run", Virtual: broken, Scenario: "steady-state", Caught: []string{"ROLLUP-TRUTH"}}, "could not run"},
		{mutants.Mutant{Name: "no-scenario", Virtual: good, Scenario: "none-of-this-name"}, "there is no scenario none-of-this-name"},
	} {
		o := trial.Run(t.Context(), c.mutant, trial.Options{Scenarios: all, Out: t.TempDir()})
		if o.Killed() != (c.survived == "") || !strings.Contains(o.Survived, c.survived) {
			t.Errorf("%s: %q, expected %q", c.mutant.Name, o.Survived, c.survived)
		}
		outcomes = append(outcomes, o)
	}
	table(t, outcomes)
}

func table(t *testing.T, outcomes []trial.Outcome) {
	var text bytes.Buffer
	if all, err := trial.Table(&text, outcomes); all || err != nil || !strings.HasSuffix(text.String(), "\nnamed first 2 of 7, killed 1 of 7\n") || strings.Count(text.String(), "SURVIVED") != 6 {
		t.Errorf("%v %v:\n%s", all, err, text.String())
	}
	if all, err := trial.Table(&text, outcomes[:1]); !all || err != nil {
		t.Errorf("%v, %v, expected all killed", all, err)
	}
	if all, _ := trial.Table(&text, nil); all {
		t.Error("nothing was tried, and that passes")
	}
}

// TestStatements: a mutant that survived in one form breaks nothing.
func TestStatements(t *testing.T) {
	catch := func(names ...string) (all []coverage.Catch) {
		for _, name := range names {
			all = append(all, coverage.Catch{Wrong: name, By: "CADENCE"})
		}
		return all
	}
	statements := []coverage.Statement{
		{ID: "S0-01", CaughtBy: catch("killed", "survivor", "not-tried")},
		{ID: "S0-02", Text: "a promise", CaughtBy: catch("survivor")},
		{ID: "S0-03", Text: "a promise", Outside: "a reason"},
	}
	outcome := func(name, survived string) trial.Outcome {
		return trial.Outcome{Mutant: mutants.Mutant{Name: name}, Survived: survived}
	}
	var text bytes.Buffer
	err := trial.Statements(&text, statements, []trial.Outcome{outcome("killed", ""), outcome("survivor", ""), outcome("survivor", "passed")})
	want := "\nSTATEMENT  BROKEN BY\nS0-01      killed\nS0-02      NOT COVERED: a promise\nS0-03      NOT COVERED: a reason\n\n1 of 3 statements have a mutant that breaks them\n"
	if err != nil || text.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, text.String(), want)
	}
}
