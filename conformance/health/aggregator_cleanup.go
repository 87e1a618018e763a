package health

import "github.com/kmsharness/kmsharness/conformance"

// aggregatorCleanup are the rules about what is removed, and what is not.
func aggregatorCleanup() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HA-CLEANUP-NODE", Profile: conformance.Core, Title: "The report of a removed node goes",
				Rule:        "The entry of a removed node is gone within 4 I + A after its last writer stopped.",
				Source:      sourceAggregator + ", cleanup (S0-15)",
				Consequence: "A node that no longer exists is complained about.",
			},
			Claims: []Claim{invariant("NO-ORPHAN"), steps("node-removed")},
		},
		{
			Check: conformance.Check{
				ID: "HA-CLEANUP-KMS", Profile: conformance.Core, Title: "Nothing stays when KMS is disabled",
				Rule:        "When KMS is no longer the encryption type, the reports and the rollups are removed.",
				Source:      sourceAggregator + ", cleanup (S0-14)",
				Consequence: "The cluster is degraded by plugins that it no longer has.",
			},
			Claims: []Claim{during("NO-ORPHAN", "kms-disabled"), steps("kms-disabled")},
		},
		{
			Check: conformance.Check{
				ID: "HA-CLEANUP-EXACT", Profile: conformance.Core, Title: "Only the entry of that node goes",
				Rule:        "Removing the entry of a node changes no entry of another, also where one name begins with the other.",
				Source:      sourceAggregator + ", cleanup (S0-15, S0-10)",
				Consequence: "The report of a healthy node is lost with that of a removed one.",
			},
			Claims: []Claim{during("OWNERSHIP", "node-removed-beside-a-longer-name"), steps("node-removed-beside-a-longer-name")},
		},
		{
			Check: conformance.Check{
				ID: "HA-CLEANUP-NOT-STALE", Profile: conformance.Core, Title: "A stale report of an expected node stays",
				Rule:        "The report of a node that is still expected is not removed, however old it is.",
				Source:      sourceAggregator + ", cleanup (S0-13)",
				Consequence: "The last report of the node is lost, with the cause in it.",
			},
			Claims: []Claim{during("OWNERSHIP", "reporter-killed")},
		},
		{
			Check: conformance.Check{
				ID: "HA-CLEANUP-NO-FIGHT", Profile: conformance.Core, Title: "It does not fight a late reporter",
				Rule:        "A reporter that outlives its node re-creates its entry at most once, and no fight follows.",
				Source:      sourceAggregator + ", cleanup (S0-16)",
				Consequence: "Two writers write for ever.",
			},
			Claims: []Claim{invariant("NO-RESURRECTION"), steps("node-removed-while-reporter-lingers")},
		},
		{
			Check: conformance.Check{
				ID: "HA-CLEANUP-UNKNOWN-NODE", Profile: conformance.Extended, Title: "The report of an unknown node goes",
				Rule:        "An entry of a node that nobody expects is removed once it is stale, and hides nobody meanwhile.",
				Source:      sourceAggregator + ", cleanup (S0-15, S0-10)",
				Consequence: "An orphan of before stays for ever.",
			},
			Claims: []Claim{during("NO-ORPHAN", "report-of-an-unknown-node"), during("ROLLUP-TRUTH", "report-of-an-unknown-node"), steps("report-of-an-unknown-node")},
		},
	}
}
