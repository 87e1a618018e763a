package health

import "github.com/kmsharness/kmsharness/conformance"

// aggregatorFreshness are the rules about reports that are old, missing or cannot be read.
func aggregatorFreshness() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HA-STALE", Profile: conformance.Core, Title: "A stale report is Unknown",
				Rule:        "A node whose last write is older than 4 I + A makes Degraded Unknown or worse, never False.",
				Source:      sourceAggregator + ", fresh (S0-08, S0-13)",
				Consequence: "What a dead reporter said last is true for ever.",
			},
			Claims: []Claim{invariant("STALE-UNKNOWN"), during("ROLLUP-TRUTH", "reporter-killed"), steps("reporter-killed")},
		},
		{
			Check: conformance.Check{
				ID: "HA-STALE-THRESHOLD", Profile: conformance.Core, Title: "Two missed ticks are no news",
				Rule:        "A report is fresh for 4 intervals: one or two writes that are lost change nothing.",
				Source:      sourceAggregator + ", fresh (S0-07, S0-08)",
				Consequence: "The rollup flaps with each lost write.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "one-write-lost"), steps("one-write-lost")},
		},
		{
			Check: conformance.Check{
				ID: "HA-STALE-TIMER", Profile: conformance.Core, Title: "Staleness needs no event",
				Rule:        "A report grows stale in time although nothing else happens in the cluster.",
				Source:      sourceAggregator + ", fresh (S0-08, S0-13)",
				Consequence: "The last reporter dies, and the rollup stays False.",
			},
			Claims: []Claim{during("STALE-UNKNOWN", "sno-reporter-killed"), during("ROLLUP-TRUTH", "sno-reporter-killed"), steps("sno-reporter-killed")},
		},
		{
			Check: conformance.Check{
				ID: "HA-MALFORMED", Profile: conformance.Core, Title: "A report that cannot be read is Unknown",
				Rule:        "A message that cannot be decoded makes Degraded Unknown.",
				Source:      sourceAggregator + ", KMSPluginsDegraded (S0-06)",
				Consequence: "A report that nobody can read is one that nobody misses.",
			},
			Claims: []Claim{{Invariant: "ROLLUP-TRUTH", In: []string{"report-that-cannot-be-believed"}, Seen: []string{"ReportMalformed"}}, step("report-that-cannot-be-believed", "steps[2].expect")},
		},
		{
			Check: conformance.Check{
				ID: "HA-CLOCK-SKEW", Profile: conformance.Extended, Title: "A report from the future is not fresh",
				Rule:        "A lastChecked further in the future than one interval makes Degraded Unknown.",
				Source:      sourceAggregator + ", fresh [decided here] (S0-13)",
				Consequence: "A node whose clock is a year ahead is fresh for a year.",
			},
			Claims: []Claim{{Invariant: "ROLLUP-TRUTH", In: []string{"report-that-cannot-be-believed"}, Seen: []string{"ClockSkew"}}, step("report-that-cannot-be-believed", "steps[4].expect")},
		},
		{
			Check: conformance.Check{
				ID: "HA-OLDEST-ENTRY", Profile: conformance.Core, Title: "The oldest entry counts",
				Rule:        "A report of which one entry is stale makes Degraded Unknown.",
				Source:      sourceAggregator + ", fresh (S0-08)",
				Consequence: "A plugin whose probe is stuck hides behind another.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "report-that-cannot-be-believed"), step("report-that-cannot-be-believed", "steps[6].expect")},
		},
		{
			Check: conformance.Check{
				ID: "HA-ABSENCE", Profile: conformance.Core, Title: "Absence is not yet observed, never broken",
				Rule:        "A node that has not reported yet never makes Degraded True.",
				Source:      sourceAggregator + ", KMSPluginsDegraded (S0-17)",
				Consequence: "Each cold start and each new node degrades the cluster.",
			},
			Claims: []Claim{seen("ABSENCE-IS-NOT-BROKEN", "=True"), step("cold-start-reporter-last", "steps[3].expect", "steps[9].never")},
		},
		{
			Check: conformance.Check{
				ID: "HA-MISSING", Profile: conformance.Core, Title: "A node that never reports is Unknown",
				Rule:        "A node without a report for more than 4 intervals since it was first expected makes Degraded Unknown.",
				Source:      sourceAggregator + ", KMSPluginsDegraded (S0-17, S0-08)",
				Consequence: "A reporter that cannot start is missed by nobody.",
			},
			Claims: []Claim{invariant("ABSENCE-IS-NOT-BROKEN"), during("ROLLUP-TRUTH", "cold-start-reporter-last"), step("cold-start-reporter-last", "steps[6].expect", "steps[8].expect")},
		},
	}
}
