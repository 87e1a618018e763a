package health_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/health"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

// catalogue is the catalogue in a wire form, or in both.
func catalogue(t *testing.T, form string) []*scenario.Scenario {
	t.Helper()
	all, err := scenarios.Load()
	if err == nil {
		all, err = scenario.InForms(all, form)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func suites(t *testing.T) []health.Suite {
	t.Helper()
	all, err := health.Suites()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// simulate runs the checks of a suite whose ids match focus against a subject on sim, strictly.
func simulate(t *testing.T, s health.Suite, subject virtual.Options, form, focus string) []conformance.Result {
	t.Helper()
	b := virtual.New(subject)
	defer func() { _ = b.Close(context.Background()) }() // nothing runs
	o := health.Options{Backend: b, Catalogue: catalogue(t, form), Out: t.TempDir(), Seed: 1}
	if focus != "" {
		o.Focus = regexp.MustCompile("^(" + focus + ")$")
	}
	c, err := health.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range c.Undecided {
		t.Error(reason)
	}
	return c.Report.Results
}

// paused is a check that sim does not support.
const paused = "HR-AFTER-PAUSE"

// TestTheProjectsOwnConform: with this project's own programs each check is judged, and holds.
func TestTheProjectsOwnConform(t *testing.T) {
	if testing.Short() {
		t.Skip("long: runs of the suite")
	}
	for _, s := range suites(t) {
		t.Run(s.Name, func(t *testing.T) {
			for _, r := range simulate(t, s, virtual.Options{}, scenario.BothContracts, "") {
				if r.Outcome != conformance.Passed && !(r.ID == paused && r.Outcome == conformance.NotSupported) {
					t.Errorf("%s: %s: %s %+v", r.ID, r.Outcome, r.Reason, r.Evidence)
				}
			}
		})
	}
}
