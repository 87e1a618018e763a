package health

import (
	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/check"
)

// aggregatorRollup are the rows of the table of the rollups.
func aggregatorRollup() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HA-ACCEPTED", Profile: conformance.Core, Title: "The CRD accepts what it writes",
				Rule:        "No API server refuses a write of the aggregator for its content.",
				Source:      sourceAggregator + "; schema of kubeapiservers.operator.openshift.io in github.com/openshift/api",
				Consequence: "The rollup stays as it is, whatever the reports say.",
			},
			Claims:    []Claim{invariant(check.AcceptedID)},
			Scenarios: []string{"steady-state", "plugins-fail-in-both-ways"},
		},
		{
			Check: conformance.Check{
				ID: "HA-HEALTHY", Profile: conformance.Core, Title: "All fresh and healthy is False",
				Rule:        "Where all reports are fresh and healthy, Degraded is False and Available is True.",
				Source:      sourceAggregator + ", KMSPluginsDegraded",
				Consequence: "No other check can be judged.",
			},
			Claims:    []Claim{Claim{Steps: []string{beforeSteps}}},
			Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HA-ROLLUP", Profile: conformance.Core, Title: "Each rollup is the table applied to the reports",
				Rule:        "Each rollup has the status of the contract's table for the reports that are visible at that moment, within A.",
				Source:      sourceAggregator + ", KMSPluginsDegraded (S0-12)",
				Consequence: "The rollup shows something else than the reports.",
			},
			Claims:    []Claim{invariant("ROLLUP-TRUTH")},
			Scenarios: []string{"steady-state", "plugin-unhealthy"},
		},
		{
			Check: conformance.Check{
				ID: "HA-UNHEALTHY", Profile: conformance.Core, Title: "An unhealthy entry is True",
				Rule:        "A fresh entry that is unhealthy makes Degraded True, and its detail reaches the ClusterOperator.",
				Source:      sourceAggregator + ", KMSPluginsDegraded (S0-05, S0-12)",
				Consequence: "A plugin that says that it cannot work degrades nothing.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "plugin-unhealthy"), steps("plugin-unhealthy")},
		},
		{
			Check: conformance.Check{
				ID: "HA-ERROR", Profile: conformance.Core, Title: "An entry with an error is True",
				Rule:        "A fresh entry with an error makes Degraded True.",
				Source:      sourceAggregator + ", KMSPluginsDegraded (S0-05, S0-12)",
				Consequence: "A plugin that does not answer degrades nothing.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "plugin-hangs"), steps("plugin-hangs")},
		},
		{
			Check: conformance.Check{
				ID: "HA-NAMES-ALL", Profile: conformance.Core, Title: "All affected plugins are named",
				Rule:        "The message names each affected node and keyID.",
				Source:      sourceAggregator + ", message (S0-05)",
				Consequence: "The administrator repairs one plugin and learns of the next afterwards.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "plugins-fail-in-both-ways", "plugin-unusable-answers"), steps("plugins-fail-in-both-ways")},
		},
		{
			Check: conformance.Check{
				ID: "HA-REASONS", Profile: conformance.Robustness, Title: "The reasons are those of the table",
				Rule:        "Each rollup has the reason of the first row of the table that applies.",
				Source:      sourceAggregator + ", KMSPluginsDegraded [decided here]",
				Consequence: "Alerts and controllers that read reasons miss the state.",
			},
			House: true, Claims: []Claim{invariant("ROLLUP-TRUTH"), invariant("CONVERGENCE"), invariant("FALSE-ALARM")},
			Scenarios: []string{"plugins-fail-in-both-ways", "kek-rotation"},
		},
		{
			Check: conformance.Check{
				ID: "HA-MESSAGE-BOUND", Profile: conformance.Robustness, Title: "The message is bounded",
				Rule:        "The message of a rollup has at most 4096 characters, then \"and N more\".",
				Source:      sourceAggregator + ", message [decided here]",
				Consequence: "The ClusterOperator of a large cluster is as long as all its plugins have to say.",
			},
			House: true, Claims: []Claim{seen("ROLLUP-TRUTH", "message of ")},
			Scenarios: []string{"plugins-fail-in-both-ways"},
		},
		{
			Check: conformance.Check{
				ID: "HA-FOLLOWS", Profile: conformance.Core, Title: "Each failure and each recovery is followed",
				Rule:        "A plugin that fails and recovers again and again is followed each time.",
				Source:      sourceAggregator + ", KMSPluginsDegraded (S0-05, S0-07)",
				Consequence: "An alarm that stood once stands for ever.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "plugin-flaps"), steps("plugin-flaps")},
		},
		{
			Check: conformance.Check{
				ID: "HA-AVAILABLE", Profile: conformance.Core, Title: "Available is about the write key",
				Rule:        "Available is False where the write-key plugin of an expected node is not usable, and not because a read key's plugin fails.",
				Source:      sourceAggregator + ", KMSPluginsAvailable [decided here] (S0-12)",
				Consequence: "The cluster is available while an API server cannot write a secret, or unavailable while all can.",
			},
			Claims:    []Claim{seen("ROLLUP-TRUTH", "KMSPluginsAvailable: "), step("plugin-hangs-beside-another", "steps[2].holds")},
			Scenarios: []string{"plugin-hangs-beside-another", "plugin-hangs"},
		},
		{
			Check: conformance.Check{
				ID: "HA-PROGRESSING-ROTATION", Profile: conformance.Extended, Title: "A rotation is in progress until all nodes have it",
				Rule:        "Progressing is True while fresh reports for one keyID disagree on kekID.",
				Source:      sourceAggregator + ", KMSPluginsProgressing [decided here] (S0-20)",
				Consequence: "A rotation is called done before all nodes use the new key.",
			},
			Claims: []Claim{seen("ROLLUP-TRUTH", "KMSPluginsProgressing: "), steps("kek-rotation")},
		},
		{
			Check: conformance.Check{
				ID: "HA-PROGRESSING-MIGRATION", Profile: conformance.Extended, Title: "Two keys are a migration",
				Rule:        "Progressing is True while two keyIDs are reported.",
				Source:      sourceAggregator + ", KMSPluginsProgressing [decided here] (S0-04)",
				Consequence: "A migration is called done while it runs.",
			},
			Claims: []Claim{{Invariant: "ROLLUP-TRUTH", In: []string{"second-plugin-added"}, Seen: []string{"KMSPluginsProgressing: "}}, steps("second-plugin-added")},
		},
		{
			Check: conformance.Check{
				ID: "HA-NUMBERED-KEK", Profile: conformance.Extended, Title: "A kekID that is a number is no keyID",
				Rule:        "The kekIDs 1 and 2 of one plugin are a rotation and not a migration.",
				Source:      "docs/contract.md, Names that must not be confused" + " (S0-09, S3-11)",
				Consequence: "A rotation in Vault is called a migration between two keys.",
			},
			Claims: []Claim{{Invariant: "ROLLUP-TRUTH", In: []string{"vault-key-id-is-a-small-number"}, Seen: []string{"KMSPluginsProgressing: "}}, steps("vault-key-id-is-a-small-number")},
		},
		{
			Check: conformance.Check{
				ID: "HA-CONVERGENCE", Profile: conformance.Core, Title: "Converged means all nodes, fresh and healthy",
				Rule:        "A rotation is called converged exactly when every expected node freshly reports the same healthy kekID for the write key.",
				Source:      sourceAggregator + ", convergence (S0-20)",
				Consequence: "The old key is removed under a node that still needs it.",
			},
			Claims:    []Claim{invariant("CONVERGENCE")},
			Scenarios: []string{"kek-rotation", "reporter-killed"},
		},
	}
}
