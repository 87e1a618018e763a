package mutants_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

// TestSimulated: every mutant in virtual time is caught, at every commit. `make mutants` runs those of real control planes, too.
func TestSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	var tried []trial.Outcome
	for _, form := range scenario.Contracts() {
		options := trial.Options{Scenarios: inForm(t, form), Out: t.TempDir()}
		for _, m := range mutants.All() {
			if m.Backend() == "local" || m.Contract != "" && m.Contract != form {
				continue
			}
			t.Run(form+"/"+m.Name, func(t *testing.T) {
				o := trial.Run(t.Context(), m, options)
				if !o.Killed() {
					t.Errorf("%s\n%s: %s", m.Mistake, o.Survived, o.Result.Text())
				}
				tried = append(tried, o)
			})
		}
	}
	firstPrinted(t, tried)
}

// firstPrinted: what is printed first of a wrong reporter names its mistake, for at least nine of ten in each form.
func firstPrinted(t *testing.T, tried []trial.Outcome) {
	var table strings.Builder
	if _, err := trial.Table(&table, tried); err != nil {
		t.Error(err)
	}
	t.Log("\n" + table.String())
	for _, form := range scenario.Contracts() {
		named, all := 0, 0
		for _, o := range tried {
			if o.Family == mutants.Reporter && o.Result.Form == form {
				if all++; o.Named() {
					named++
				}
			}
		}
		if named*10 < all*9 || all == 0 {
			t.Errorf("%s: of %d wrong reporters %d are named first, expected nine of ten", form, all, named)
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
		// Floods are for real API servers.
		if seen[m.Scenario] || m.Family == mutants.Cluster {
			continue
		}
		seen[m.Scenario] = true
		good := mutants.Mutant{Name: "good-" + m.Scenario, Scenario: m.Scenario}
		var timing contract.Timing
		if m.Simulated() {
			timing = m.Virtual().Timing
		}
		good.Virtual = func() virtual.Options { return virtual.Options{Timing: timing} }
		t.Run(m.Scenario, func(t *testing.T) {
			o := trial.Run(t.Context(), good, options)
			if o.Result.Status == result.NotSupported {
				t.Skipf("a mutant that runs as processes is caught here: %v", o.Result.Reasons)
			}
			if o.Result.Status != result.Passed || o.Killed() {
				t.Errorf("%s: %s", o.Survived, o.Result.Text())
			}
		})
	}
}

// TestOlderKeyStays: an operator that keeps the plugins of older keys, as OpenShift's do with the last one, is right where that is allowed.
func TestOlderKeyStays(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	s := *find(t, "operator-rotation-beside-an-older-key")
	s.LastKeyStays = true
	keeps, err := mutants.Find("plugins-never-end-simulated")
	if err != nil {
		t.Fatal(err)
	}
	good := mutants.Mutant{Name: "keeps-older-keys", Scenario: s.Name, Virtual: func() virtual.Options {
		o := keeps.Virtual()
		o.Operator.Command = cluster.DefaultOperator // its stages are those of its objects
		return o
	}}
	o := trial.Run(t.Context(), good, trial.Options{Scenarios: []*scenario.Scenario{&s}, Out: t.TempDir()})
	if o.Result.Status != result.Passed {
		t.Error(o.Result.Text())
	}
}

// TestLongRoundsAreNamed: of a reporter whose rounds take too long the mistake is said, in both forms, and not the silence alone.
func TestLongRoundsAreNamed(t *testing.T) {
	for _, form := range scenario.Contracts() {
		options := trial.Options{Scenarios: inForm(t, form), Out: t.TempDir()}
		for name, want := range map[string]string{"probes-in-turn": "in turn and not concurrently", "no-probe-deadline": "its Status call of plugin", "long-probe-deadline": "its Status call of plugin"} {
			all := mutants.All()
			m := all[slices.IndexFunc(all, func(m mutants.Mutant) bool { return m.Name == name })]
			if o := trial.Run(t.Context(), m, options); !o.Named() || !strings.Contains(o.Result.Failures[0].Seen, want) {
				t.Errorf("%s: expected %q first: %s", name, want, o.Result.Text())
			}
		}
	}
}
