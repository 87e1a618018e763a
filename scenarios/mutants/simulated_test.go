package mutants_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

// TestSimulated: every mutant of the simulator and of the model is caught, at every commit. `make mutants` runs those of real control planes, too.
func TestSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for _, form := range scenario.Contracts() {
		options := trial.Options{Scenarios: inForm(t, form), Out: t.TempDir()}
		for _, m := range mutants.All() {
			if m.Backend() == "local" || !m.In(form) || m.Modelled() && form != scenario.Contracts()[0] {
				continue
			}
			t.Run(form+"/"+m.Name, func(t *testing.T) {
				t.Parallel()
				if o := trial.Run(t.Context(), m, options); !o.Killed() {
					t.Errorf("%s\n%s: %s", m.Mistake, o.Survived, o.Result.Text())
				} else if m.Caught[0] == check.AcceptedID && o.Result.Failures[0].ID != check.AcceptedID {
					t.Errorf("%s comes first, expected the cause before what follows from it: %s", o.Result.Failures[0].ID, o.Result.Text())
				}
			})
		}
	}
}

// inForm is the catalogue in a wire form.
func inForm(t *testing.T, form string) []*scenario.Scenario {
	t.Helper()
	all, err := scenario.InForms(catalogue(t), form)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTheUnmutatedPass: the scenarios that catch mutants pass without any.
func TestTheUnmutatedPass(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	options := trial.Options{Scenarios: catalogue(t), Out: t.TempDir()}
	seen := map[string]bool{}
	for _, m := range mutants.All() {
		// Of operators, the tests of the model say it. Floods are for real API servers.
		if seen[m.Scenario] || m.Modelled() || m.Family == mutants.Cluster {

			continue
		}
		seen[m.Scenario] = true
		good := mutants.Mutant{Name: "good-" + m.Scenario, Scenario: m.Scenario, Subject: func() sim.Options { return sim.Options{} }}
		t.Run(m.Scenario, func(t *testing.T) {
			t.Parallel()
			if o := trial.Run(t.Context(), good, options); o.Result.Status != result.Passed || o.Killed() {
				t.Errorf("%s: %s", o.Survived, o.Result.Text())
			}
		})
	}
}
