package health

import "github.com/kmsharness/kmsharness/conformance"

// aggregatorLife are the rules about replicas, restarts and connections.
func aggregatorLife() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HA-RESTART", Profile: conformance.Core, Title: "A restart loses nothing",
				Rule:        "After a restart the rollups are what the reports say, and they were not removed meanwhile.",
				Source:      sourceAggregator + " (S0-11, S0-12)",
				Consequence: "The alarm that stood is gone for a moment, and with it the time of its transition.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "aggregator-restarted"), steps("aggregator-restarted")},
		},
		{
			Check: conformance.Check{
				ID: "HA-HANDOVER", Profile: conformance.Extended, Title: "A standby takes over with what is true now",
				Rule:        "When the leader is killed, its successor decides from the current reports.",
				Source:      sourceAggregator + " (S0-11, S0-12)",
				Consequence: "A new leader writes what was true when it started.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "aggregator-handed-over"), steps("aggregator-handed-over")},
		},
		{
			Check: conformance.Check{
				ID: "HA-LEASE-RELEASED", Profile: conformance.Extended, Title: "A leader that ends gives its lease back",
				Rule:        "When the leader gets a SIGTERM, the standby goes on at once.",
				Source:      sourceAggregator + " (S0-10, S0-12)",
				Consequence: "Nobody aggregates until the lease has run out.",
			},
			Claims: []Claim{steps("aggregator-asked-to-leave")},
		},
		{
			Check: conformance.Check{
				ID: "HA-SIGTERM", Profile: conformance.Extended, Title: "It ends at SIGTERM",
				Rule:        "An aggregator ends within 2 s of a SIGTERM.",
				Source:      sourceOwn,
				Consequence: "The kubelet kills it after its grace period, and each roll-out takes that long.",
			},
			Claims:    []Claim{invariant(endsInTimeID)},
			Scenarios: []string{"aggregator-asked-to-leave"},
		},
		{
			Check: conformance.Check{
				ID: "HA-WATCH-RENEWED", Profile: conformance.Core, Title: "It watches again after its connections broke",
				Rule:        "After its connections were reset it learns of each change as soon as before.",
				Source:      sourceAggregator + ", watches (S0-18)",
				Consequence: "Changes become visible only at the next resync.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "watches-come-back"), steps("watches-come-back")},
		},
		{
			Check: conformance.Check{
				ID: "HA-WATCH-LATE", Profile: conformance.Robustness, Title: "A late watch costs time and not the truth",
				Rule:        "Where its watches are late, it calls no fresh report stale and removes nothing that is there.",
				Source:      sourceAggregator + ", watches [decided here] (S0-08, S0-15)",
				Consequence: "A slow API server makes it degrade a healthy cluster.",
			},
			Claims: []Claim{during("ROLLUP-TRUTH", "watches-late"), during("OWNERSHIP", "watches-late"), steps("watches-late")},
		},
	}
}
