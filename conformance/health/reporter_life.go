package health

import "github.com/kmsharness/kmsharness/conformance"

// reporterLife are the rules about start, end and replacement of reporters.
func reporterLife() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-SIGTERM", Profile: conformance.Extended, Title: "It ends at SIGTERM",
				Rule:        "A reporter ends within 2 s of a SIGTERM.",
				Source:      sourceOwn,
				Consequence: "The kubelet kills it after its grace period, and each roll-out takes that long.",
			},
			Claims: []Claim{invariant(endsInTimeID)}, Scenarios: []string{"reporter-restarted-quickly", "node-removed-while-reporter-lingers"},
		},
		{
			Check: conformance.Check{
				ID: "HR-NO-LAST-WORDS", Profile: conformance.Extended, Title: "It writes nothing when it ends",
				Rule:        "After a SIGTERM the write that is under way may arrive, and no other.",
				Source:      sourceAggregator + ", cleanup (S0-16)",
				Consequence: "What the aggregator has removed comes back when the reporter goes.",
			},
			Claims: []Claim{seen("NO-RESURRECTION", "was asked to end")}, Scenarios: []string{"reporter-restarted-quickly"},
		},
		{
			Check: conformance.Check{
				ID: "HR-NO-RESURRECTION", Profile: conformance.Core, Title: "A removed entry does not come back",
				Rule:        "The entry of a removed node comes back at most once, by the write of a reporter that was still shutting down.",
				Source:      sourceAggregator + ", cleanup (S0-15, S0-16)",
				Consequence: "Reporter and aggregator fight, and the orphan stays.",
			},
			Claims: []Claim{invariant("NO-RESURRECTION"), steps("node-removed-while-reporter-lingers")},
		},
		{
			Check: conformance.Check{
				ID: "HR-OVERLAP", Profile: conformance.Extended, Title: "Two reporters of one node agree",
				Rule:        "While two reporters of a node run, as in a roll-out with surge, and when the older one ends, the report stays and is fresh.",
				Source:      sourceReporter + ", field manager (S0-01, S0-10)",
				Consequence: "The reporter that ends removes what its successor has written.",
			},
			Claims: []Claim{steps("reporters-overlap")},
		},
		{
			Check: conformance.Check{
				ID: "HR-SUCCESSOR", Profile: conformance.Core, Title: "A successor takes over the entry",
				Rule:        "A reporter that is started after its predecessor was killed writes the same entry again.",
				Source:      sourceReporter + ", field manager (S0-10, S0-13)",
				Consequence: "After a crash the old entry remains along with the new one, or conflicts with it.",
			},
			Claims: []Claim{during("CADENCE", "reporter-killed"), steps("reporter-killed")},
		},
	}
}
