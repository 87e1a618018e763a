package mutants_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
	"github.com/kmsharness/kmsharness/scenarios/mutants/trial"
)

// TestManagerNames: a correct reporter passes whatever it calls its field manager, also where the harness makes requests with its credential.
func TestManagerNames(t *testing.T) {
	names := map[string]func(node string) string{
		"of OpenShift":  contract.FieldManager,
		"of the design": func(node string) string { return contract.ReporterFieldManagerPrefix + node },
		"another":       func(node string) string { return node + "/reporter" },
	}
	for _, form := range scenario.Contracts() {
		options := trial.Options{Scenarios: inForm(t, form), Out: t.TempDir()}
		for _, s := range []string{"reporter-may-write-its-own-entry-only", "service-token-speaks-for-its-node", "reporter-may-not-fill-the-cr"} {
			for what, name := range names {
				good := mutants.Mutant{Name: s + " " + what, Scenario: s, Virtual: mutants.Managed(name)}
				t.Run(form+"/"+good.Name, func(t *testing.T) {
					if o := trial.Run(t.Context(), good, options); o.Result.Status != result.Passed || len(o.Result.Failures) > 0 {
						t.Error(o.Result.Text())
					}
				})
			}
		}
	}
}
