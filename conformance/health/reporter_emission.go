package health

import "github.com/kmsharness/kmsharness/conformance"

// reporterEmission are the rules about when a reporter writes.
func reporterEmission() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-CADENCE-MAX", Profile: conformance.Core, Title: "It writes in every interval",
				Rule:        "While it can write, a reporter writes at least once per I + J + R + W, also when nothing has changed.",
				Source:      sourceReporter + ", interval and emission (S0-07)",
				Consequence: "The report grows stale and the rollup turns Unknown, although all plugins work.",
			},
			Claims: []Claim{seen("CADENCE", "wrote nothing for")}, Scenarios: []string{"steady-state", "reporter-restarted-quickly"},
		},
		{
			Check: conformance.Check{
				ID: "HR-CADENCE-MIN", Profile: conformance.Extended, Title: "It writes once in an interval",
				Rule:        "A reporter writes at most once per I - J: one apply with the results of all probes.",
				Source:      sourceReporter + ", interval (S0-07, S0-21)",
				Consequence: "Each write of each node goes to the same object: the API servers pay for it.",
			},
			Claims: []Claim{seen("CADENCE", "no fewer than")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-JITTER", Profile: conformance.Extended, Title: "Its ticks have jitter",
				Rule:        "The time between ticks is moved by a random jitter, so that replicas do not write in lockstep.",
				Source:      sourceReporter + ", interval and jitter (S0-07, S0-21)",
				Consequence: "Reporters that were started together write together for ever, all to the same object.",
			},
			Claims: []Claim{seen("CADENCE", "follow each other at intervals")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-AFTER-PAUSE", Profile: conformance.Extended, Title: "Missed ticks are not made up for",
				Rule:        "A reporter that was stopped by its machine and goes on writes at its interval, and nothing for the ticks that it missed.",
				Source:      sourceReporter + ", emission (S0-07, S0-13)",
				Consequence: "A burst of writes from every node whose machine was paused.",
			},
			Claims: []Claim{{Invariant: "CADENCE", In: []string{"reporter-paused"}, Seen: []string{"no fewer than"}}, steps("reporter-paused")},
		},
		{
			Check: conformance.Check{
				ID: "HR-NOTHING-QUEUED", Profile: conformance.Core, Title: "What could not be written is dropped",
				Rule:        "A result that cannot be written inside its interval is dropped: no write carries a probe older than I + R + W.",
				Source:      sourceReporter + ", emission (S0-07)",
				Consequence: "After an outage the cluster shows what was true during it.",
			},
			Claims: []Claim{invariant("FRESH-ONLY")}, Scenarios: []string{"apiserver-down"},
		},
		{
			Check: conformance.Check{
				ID: "HR-MONOTONIC", Profile: conformance.Core, Title: "An older result never replaces a newer one",
				Rule:        "lastChecked of one plugin never goes back, and advances with each probe.",
				Source:      sourceReporter + ", emission (S0-07)",
				Consequence: "A failure that is over comes back, or a new one disappears.",
			},
			Claims: []Claim{invariant("MONOTONIC")}, Scenarios: []string{"apiserver-down", "steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-API-OUTAGE", Profile: conformance.Core, Title: "It survives an outage of its API server",
				Rule:        "A reporter whose API server was killed and started again writes again at its interval, without a restart of its own.",
				Source:      sourceReporter + ", connectivity (S0-18)",
				Consequence: "Each restart of an API server silences its node until somebody restarts the reporter.",
			},
			Claims: []Claim{{Invariant: "CADENCE", In: []string{"apiserver-down"}, Seen: []string{"wrote nothing for"}}, steps("apiserver-down")},
		},
		{
			Check: conformance.Check{
				ID: "HR-REFUSED", Profile: conformance.Extended, Title: "It goes on after refusals",
				Rule:        "A reporter whose writes were refused as forbidden writes again at its interval when it may.",
				Source:      sourceReporter + ", emission (S0-13, S0-19)",
				Consequence: "A role binding that was missing for a minute silences the node until somebody restarts the reporter.",
			},
			Claims: []Claim{{Invariant: "CADENCE", In: []string{"roles-removed"}, Seen: []string{"wrote nothing for"}}, steps("roles-removed")},
		},
		{
			Check: conformance.Check{
				ID: "HR-REFUSED-RATE", Profile: conformance.Robustness, Title: "It does not hammer an API server that refuses it",
				Rule:        "After a refused write the next try is that of the next interval.",
				Source:      sourceReporter + ", refusals [decided here]",
				Consequence: "An API server that has too many requests gets more of them.",
			},
			House: true, Claims: []Claim{seen("CADENCE", "tries to write of")}, Scenarios: []string{"roles-removed"},
		},
		{
			Check: conformance.Check{
				ID: "HR-CREDENTIAL", Profile: conformance.Extended, Title: "It uses a renewed credential",
				Rule:        "A reporter reads the credential of its kubeconfig again when that is replaced, without a restart.",
				Source:      sourceReporter + ", identity (S0-13, S0-19)",
				Consequence: "The node is silent from the moment at which the first certificate expires.",
			},
			Claims: []Claim{{Invariant: "CADENCE", In: []string{"reporter-credential-expires"}, Seen: []string{"wrote nothing for"}}, steps("reporter-credential-expires")},
		},
	}
}
