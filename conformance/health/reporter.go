package health

import (
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Sections of the contract that the checks cite.
const (
	sourceReporter   = "docs/contract.md, The reporter"
	sourceTyped      = "docs/contract.md, The typed form of the same report"
	sourceAggregator = "docs/contract.md, The aggregator"
	sourceTiming     = "docs/contract.md, Timing that a user may rely on"
	sourceMetrics    = "docs/contract.md, Metrics, alerts"
	sourceUnion      = "docs/contract.md, Inertia and Unknown, as in library-go"
	sourceSwitch     = "docs/contract.md, Switching the encryption"
	sourceOwn        = "docs/own-programs.md, Testing your own reporter or aggregator"
)

// Reporter certifies a health reporter. Refused writes come first: whatever follows from them is blocked.
func Reporter() Suite {
	return Suite{
		Name:       "reporter",
		Checks:     slices.Concat([]Check{runs("HR", "A reporter")}, reporterAccepted(), reporterEmission(), reporterProbes(), reporterAnswers(), reporterForm(), reporterWrites(), reporterLife(), reporterMetrics(), reporterEndToEnd()),
		Invariants: []check.Invariant{endsInTime(history.RoleReporter)},
	}
}

// reporterAccepted are the checks whose failure explains nearly all others.
func reporterAccepted() []Check {
	const consequence = "The API server refuses the whole apply, and with it the reports of all plugins of the node: the rollup turns Unknown, and nobody learns of the failure."
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-ACCEPTED-TYPED", Profile: conformance.Core, Title: "The CRD accepts the typed reports",
				Rule:        "Every apply of typed reports is valid under the schema of the CRD, whatever the plugins answer.",
				Source:      sourceTyped + " (S0-05, S0-06); schema of kubeapiservers.operator.openshift.io in github.com/openshift/api",
				Consequence: consequence,
			},
			Form: scenario.ContractHealthReports, Claims: []Claim{invariant(check.AcceptedID)},
			Scenarios: []string{"plugin-hangs", "typed-texts-visible", "typed-key-ids-visible", "typed-hang-and-errors-visible"},
		},
		{
			Check: conformance.Check{
				ID: "HR-ACCEPTED-CONDITION", Profile: conformance.Core, Title: "The CRD accepts the condition",
				Rule:        "Every apply of the condition is valid under the schema of the CRD, whatever the plugins answer.",
				Source:      sourceReporter + ", condition (S0-06); schema of kubeapiservers.operator.openshift.io in github.com/openshift/api",
				Consequence: consequence,
			},
			Form: scenario.ContractConditions, Claims: []Claim{invariant(check.AcceptedID)},
			Scenarios: []string{"plugin-hangs", "plugin-hostile-detail"},
		},
		{
			Check: conformance.Check{
				ID: "HR-FIRST-REPORT", Profile: conformance.Core, Title: "A healthy cluster is reported as healthy",
				Rule:        "Where all plugins are well, the CR soon has an entry for each plugin of each node, all of them healthy.",
				Source:      sourceReporter + " (S0-01)",
				Consequence: "No other check can be judged, and the rollup is Unknown for ever.",
			},
			Claims: []Claim{{Steps: []string{beforeSteps}}}, Scenarios: []string{"steady-state"},
		},
	}
}
