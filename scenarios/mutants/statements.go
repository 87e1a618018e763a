package mutants

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/scenarios/mutants/kmsplugin"
)

// Subjects are all wrong subjects by name, those of the suite for plugins included, for scenarios/statements.yaml.
func Subjects() map[string]coverage.Subject {
	all := map[string]coverage.Subject{}
	for _, m := range All() {
		all[m.Name] = coverage.Subject{Scenario: m.Scenario, Caught: m.Caught}
	}
	for _, m := range kmsplugin.All() {
		all[m.Name] = coverage.Subject{Caught: append(slices.Clone(m.Also), m.Caught)}
	}
	return all
}
