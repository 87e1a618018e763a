package health

import "github.com/kmsharness/kmsharness/conformance"

// reporterEndToEnd are the promises to users, which rest on all other rules.
func reporterEndToEnd() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-DETECTION", Profile: conformance.Core, Title: "A failure is visible in time",
				Rule:        "A plugin that starts to fail is visible in the rollup within I + J + R + W + A.",
				Source:      sourceTiming + " (S0-05, S0-12)",
				Consequence: "The administrator learns of a failure too late, or never.",
			},
			EndToEnd: true, Claims: []Claim{invariant("DETECTION"), invariant("FALSE-HEALTHY")}, Scenarios: []string{"plugin-unhealthy", "plugin-hangs"},
		},
		{
			Check: conformance.Check{
				ID: "HR-RECOVERY", Profile: conformance.Core, Title: "A recovery is visible in time",
				Rule:        "A plugin that recovers is visible in the rollup within I + J + R + W + A.",
				Source:      sourceTiming + " (S0-05, S0-12)",
				Consequence: "An alarm lasts although its cause is gone.",
			},
			EndToEnd: true, Claims: []Claim{invariant("RECOVERY")}, Scenarios: []string{"plugin-unhealthy", "plugin-hangs"},
		},
		{
			Check: conformance.Check{
				ID: "HR-NO-FALSE-ALARM", Profile: conformance.Core, Title: "A healthy cluster is never reported broken",
				Rule:        "Once everything has been well for longer than the recovery bound, the rollup is False, and it is never True for a reason that did not happen.",
				Source:      sourceTiming + " (S0-07, S0-08)",
				Consequence: "False alarms lead operators to ignore true ones.",
			},
			EndToEnd: true, Claims: []Claim{invariant("FALSE-ALARM"), steps("steady-state")},
		},
		otherRules("HR", "a reporter", "STALE-UNKNOWN", "ABSENCE-IS-NOT-BROKEN", "NO-ORPHAN", "ROLLUP-TRUTH", "QUIET", "UNION", "CONVERGENCE", "UID", "NO-DATA-LOSS", "SWITCH-ORDER", "OPERATOR-CONVERGENCE", "STREAM-TRUTH", "KEY-ID-STABLE", "NOTHING-SECRET", "NO-FORGED-EXCUSE", "NOTHING-RAN"),
	}
}

// otherRules claims the invariants that are about the other parts of the system: with those of this project they hold, unless the subject gets in
// their way.
func otherRules(prefix, subject string, invariants ...string) Check {
	c := Check{
		Check: conformance.Check{
			ID: prefix + "-OTHER-INVARIANTS", Profile: conformance.Robustness, Title: "All other invariants hold",
			Rule:        "No invariant about the other parts of the system is violated while " + subject + " runs with them.",
			Source:      "docs/contract.md",
			Consequence: "The evidence names the invariant and what was seen.",
		},
		EndToEnd: true, Scenarios: []string{"steady-state"},
	}
	for _, id := range invariants {
		c.Claims = append(c.Claims, invariant(id))
	}
	return c
}

// in gives a check other scenarios.
func (c Check) in(scenarios ...string) Check {
	c.Scenarios = scenarios
	return c
}
