package health

import "github.com/kmsharness/kmsharness/conformance"

// aggregatorEndToEnd are the promises to users, which rest on all other rules.
func aggregatorEndToEnd() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HA-DETECTION", Profile: conformance.Core, Title: "A failure is visible in time",
				Rule:        "A plugin that starts to fail is visible in the rollup within I + J + R + W + A.",
				Source:      sourceTiming + " (S0-05, S0-12)",
				Consequence: "The administrator learns of a failure too late, or never.",
			},
			EndToEnd: true, Claims: []Claim{invariant("DETECTION"), invariant("FALSE-HEALTHY")},
			Scenarios: []string{"plugin-unhealthy", "plugin-hangs"},
		},
		{
			Check: conformance.Check{
				ID: "HA-RECOVERY", Profile: conformance.Core, Title: "A recovery is visible in time",
				Rule:        "A plugin that recovers is visible in the rollup within I + J + R + W + A.",
				Source:      sourceTiming + " (S0-05, S0-12)",
				Consequence: "An alarm lasts although its cause is gone.",
			},
			EndToEnd: true, Claims: []Claim{invariant("RECOVERY")},
			Scenarios: []string{"plugin-unhealthy", "plugin-hangs"},
		},
		{
			Check: conformance.Check{
				ID: "HA-NO-FALSE-ALARM", Profile: conformance.Core, Title: "A healthy cluster is never reported broken",
				Rule:        "Once everything has been well for longer than the recovery bound, the rollup is False, and it is never True for a reason that did not happen.",
				Source:      sourceTiming + " (S0-07, S0-08)",
				Consequence: "False alarms lead operators to ignore true ones.",
			},
			EndToEnd: true, Claims: []Claim{invariant("FALSE-ALARM"), steps("steady-state")},
		},
		otherRules("HA", "an aggregator", "TRUTHFUL-PROBE", "FORMAT", "CADENCE", "MONOTONIC", "FRESH-ONLY", "LEAST-PRIVILEGE", "UID", "NO-DATA-LOSS", "SWITCH-ORDER", "OPERATOR-CONVERGENCE", "STREAM-TRUTH", "KEY-ID-STABLE", "NOTHING-SECRET", "NO-FORGED-EXCUSE", "NOTHING-RAN"),
	}
}
