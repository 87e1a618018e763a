package trial_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/scenarios"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

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
	trial.Run(t.Context(), mutants.Mutant{Name: "good", Subject: func() sim.Options { return sim.Options{} }, Scenario: "steady-state"}, trial.Options{Scenarios: all, Out: out})
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
	good := func() sim.Options { return sim.Options{} }
	unhealthy := func() sim.Options {
		f, err := fault.ParseFlag("healthz:text=no")
		if err != nil {
			t.Error(err)
		}
		return sim.Options{TestHooks: sim.TestHooks{Faults: []fault.Fault{f}}}
	}
	broken := func() sim.Options { return sim.Options{TestHooks: sim.TestHooks{Faults: make([]fault.Fault, 1)}} }
	var outcomes []trial.Outcome
	for _, c := range []struct {
		mutant   mutants.Mutant
		survived string // a part of why; empty if killed
	}{
		{mutants.Mutant{Name: "killed", Subject: unhealthy, Scenario: "steady-state", Caught: []string{"before.expect"}}, ""},
		{mutants.Mutant{Name: "good", Subject: good, Scenario: "steady-state", Caught: []string{"before.expect"}}, "the run is passed"},
		{mutants.Mutant{Name: "by-another", Subject: unhealthy, Scenario: "steady-state", Caught: []string{"FORMAT"}}, "expected FORMAT to fail"},
		{mutants.Mutant{Name: "by-half", Subject: unhealthy, Scenario: "steady-state", Caught: []string{"before.expect", "FORMAT"}}, "expected before.expect, FORMAT to fail"},
		{mutants.Mutant{Name: "by-nothing", Subject: unhealthy, Scenario: "steady-state"}, "to fail"},
		{mutants.Mutant{Name: "no-run", Subject: broken, Scenario: "steady-state", Caught: []string{"before.expect"}}, "could not run"},
		{mutants.Mutant{Name: "no-scenario", Subject: good, Scenario: "none-of-this-name"}, "there is no scenario none-of-this-name"},
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
