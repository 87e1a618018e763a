package health

import (
	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/check"
)

// reporterWrites are the rules about what a reporter asks of the API server, and under which name.
func reporterWrites() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-APPLY", Profile: conformance.Core, Title: "It writes by Server-Side Apply",
				Rule:        "Each write is a Server-Side Apply of the status subresource: no update, no other patch, no create.",
				Source:      sourceReporter + ", interval and identity (S0-10)",
				Consequence: "Many writers of one object overwrite or refuse each other.",
			},
			Claims: []Claim{seen("LEAST-PRIVILEGE", ": update ", ": create ")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-OWN-ENTRY", Profile: conformance.Core, Title: "It writes its own entry and nothing else",
				Rule:        "A reporter writes the entry of its own node: no entry of another node, no rollup, no other condition.",
				Source:      sourceReporter + ", identity (S0-19)",
				Consequence: "A compromised sidecar speaks for other nodes, or for the operator.",
			},
			Claims: []Claim{seen("LEAST-PRIVILEGE", ` with condition "`, ` with report of node "`), invariant("OWNERSHIP")}, Scenarios: []string{"steady-state", "plugin-unhealthy"},
		},
		{
			Check: conformance.Check{
				ID: "HR-LEAST-PRIVILEGE", Profile: conformance.Extended, Title: "It asks for nothing else",
				Rule:        "A reporter makes no request other than reading the operator CR and applying its status.",
				Source:      sourceReporter + ", identity (S0-19)",
				Consequence: "It does not work with the role that the contract gives it, or needs a wider one.",
			},
			Claims: []Claim{invariant("LEAST-PRIVILEGE")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-MANAGER-OF-THE-NODE", Profile: conformance.Core, Title: "Its field manager is that of the node",
				Rule:        "A reporter writes under a field manager that no other node uses.",
				Source:      sourceReporter + ", field manager (S0-10)",
				Consequence: "Each apply removes the entry of the node that wrote before.",
			},
			Claims: []Claim{seen("OWNERSHIP", "a field manager of its own", "is owned by field manager")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-MANAGER-STABLE", Profile: conformance.Core, Title: "Its field manager survives a restart",
				Rule:        "The field manager of a node's reporter is the same after each restart.",
				Source:      sourceReporter + ", field manager (S0-10)",
				Consequence: "What was written before a restart belongs to nobody who could remove it.",
			},
			Claims: []Claim{seen("OWNERSHIP", "one field manager for all its writes")}, Scenarios: []string{"reporter-restarted-quickly", "reporters-overlap"},
		},
		{
			Check: conformance.Check{
				ID: "HR-FORCE", Profile: conformance.Core, Title: "It takes its entry back",
				Rule:        "It applies with force: after somebody else has written its entry, its next write takes it back.",
				Source:      sourceReporter + ", field manager (S0-10)",
				Consequence: "Once somebody has edited the entry, every write is a conflict.",
			},
			Scenarios: []string{"steady-state", "entry-taken-over"},
			Claims:    []Claim{seen("OWNERSHIP", "an apply with force=true"), during(check.AcceptedID, "entry-taken-over"), during("CADENCE", "entry-taken-over"), steps("entry-taken-over")},
		},
	}
}
