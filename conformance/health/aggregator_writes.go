package health

import "github.com/kmsharness/kmsharness/conformance"

// aggregatorWrites are the rules about what an aggregator writes, when, and under which name.
func aggregatorWrites() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HA-QUIET", Profile: conformance.Core, Title: "It writes only when a rollup changes",
				Rule:        "In a steady state the aggregator writes nothing.",
				Source:      sourceAggregator + " (S0-21)",
				Consequence: "Each report of each node causes another write.",
			},
			Claims:    []Claim{invariant("QUIET")},
			Scenarios: []string{"steady-state", "plugin-unhealthy"},
		},
		{
			Check: conformance.Check{
				ID: "HA-ONE-WRITER", Profile: conformance.Core, Title: "Of several replicas one writes",
				Rule:        "Replicas elect a leader, and only the leader writes.",
				Source:      sourceAggregator + " (S0-10)",
				Consequence: "Replicas overwrite each other.",
			},
			Claims: []Claim{during("QUIET", "two-aggregators-one-speaks"), steps("two-aggregators-one-speaks")},
		},
		{
			Check: conformance.Check{
				ID: "HA-RESTRAINT", Profile: conformance.Robustness, Title: "It backs off where it is refused",
				Rule:        "An aggregator that is refused asks at most ten times in a second, and not before Retry-After.",
				Source:      sourceAggregator + ", refusals [decided here]",
				Consequence: "An API server that has too many requests gets more of them.",
			},
			House: true, Claims: []Claim{seen("QUIET", "asked again")},
			Scenarios: []string{"roles-removed"},
		},
		{
			Check: conformance.Check{
				ID: "HA-REFUSED", Profile: conformance.Extended, Title: "It goes on after refusals",
				Rule:        "What happened while its writes were refused is in the rollup as soon as it may write.",
				Source:      sourceAggregator + " (S0-12, S0-19)",
				Consequence: "A role binding that was missing for a minute freezes the rollup.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "roles-removed"), steps("roles-removed")},
		},
		{
			Check: conformance.Check{
				ID: "HA-FIELD-MANAGER", Profile: conformance.Core, Title: "It has a field manager of its own",
				Rule:        "It writes the rollups under one field manager that nobody else uses.",
				Source:      sourceAggregator + " (S0-10)",
				Consequence: "Another controller that uses the same name removes the rollups.",
			},
			Claims:    []Claim{seen("OWNERSHIP", "a field manager of its own", "one field manager for all its writes", "is owned by field manager")},
			Scenarios: []string{"plugin-unhealthy"},
		},
		{
			Check: conformance.Check{
				ID: "HA-FOREIGN-CONDITIONS", Profile: conformance.Core, Title: "Conditions of others are left alone",
				Rule:        "It changes no condition of another controller.",
				Source:      sourceAggregator + " (S0-10, S0-11)",
				Consequence: "What other controllers say is undone.",
			},
			Claims:    []Claim{invariant("OWNERSHIP")},
			Scenarios: []string{"foreign-conditions-are-left-alone"},
		},
		{
			Check: conformance.Check{
				ID: "HA-UNION", Profile: conformance.Core, Title: "The ClusterOperator is the union",
				Rule:        "Degraded, Available and Progressing of the ClusterOperator are the union of the conditions of the CR with that suffix.",
				Source:      sourceUnion + "; The aggregator, suffix routing (S0-11, S0-12)",
				Consequence: "The administrator who asks for the cluster's operators sees something else.",
			},
			Claims:    []Claim{invariant("UNION"), steps("foreign-conditions-are-left-alone")},
			Scenarios: []string{"foreign-conditions-are-left-alone", "plugin-unhealthy"},
		},
		{
			Check: conformance.Check{
				ID: "HA-UNION-NO-REPORTS", Profile: conformance.Core, Title: "Reports do not reach the ClusterOperator",
				Rule:        "No condition KMSHealthReporter_* is in the ClusterOperator.",
				Source:      sourceAggregator + ", suffix routing (S0-11)",
				Consequence: "The reports of all nodes stand on the ClusterOperator.",
			},
			Claims:    []Claim{seen("UNION", "a reporter's condition on the ClusterOperator")},
			Scenarios: []string{"steady-state"},
		},
	}
}
