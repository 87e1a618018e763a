package health

import (
	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// reporterForm are the rules about the form of a report.
func reporterForm() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-CONDITION-CONSTANT", Profile: conformance.Core, Title: "Status and reason are constant",
				Rule:        "The condition KMSHealthReporter_<node> has status True and reason AsExpected, always.",
				Source:      sourceReporter + ", condition (S0-11)",
				Consequence: "The condition changes with each failure, and a client that watches transitions reacts to it.",
			},
			Form: scenario.ContractConditions, Claims: []Claim{seen("FORMAT", "condition says")}, Scenarios: []string{"plugin-unhealthy", "steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-TRANSITION-TIME", Profile: conformance.Extended, Title: "lastTransitionTime does not move",
				Rule:        "lastTransitionTime stays while the condition stands, because its status never changes.",
				Source:      sourceReporter + ", condition",
				Consequence: "The condition appears to change with every write.",
			},
			Form: scenario.ContractConditions, Claims: []Claim{seen("FORMAT", "lastTransitionTime")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-TRANSITION-TIME-RESTART", Profile: conformance.Extended, Title: "A restart keeps lastTransitionTime",
				Rule:        "A reporter that was restarted keeps the lastTransitionTime of the condition that it finds.",
				Source:      sourceReporter + ", condition (S0-10)",
				Consequence: "A roll-out of reporters appears as a change of every node.",
			},
			Form:   scenario.ContractConditions,
			Claims: []Claim{{Invariant: "FORMAT", In: []string{"reporter-restarted-quickly"}, Seen: []string{"lastTransitionTime"}}, steps("reporter-restarted-quickly")},
		},
		{
			Check: conformance.Check{
				ID: "HR-JSON-MINIFIED", Profile: conformance.Extended, Title: "The message is minified",
				Rule:        "The message is JSON without white space between tokens.",
				Source:      sourceReporter + ", message (S0-06)",
				Consequence: "An object that every node writes is twice as long as it must be.",
			},
			Form: scenario.ContractConditions, Claims: []Claim{seen("FORMAT", "message is not minified")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-JSON-FORM", Profile: conformance.Core, Title: "The message is an array of entries",
				Rule:        "The message is a JSON array of entries with the fields keyID, kekID, status, lastChecked and detail, in this order, one entry for each keyID.",
				Source:      sourceReporter + ", message (S0-06)",
				Consequence: "Readers cannot decode the message: the rollup turns Unknown with reason ReportMalformed.",
			},
			Form: scenario.ContractConditions, Claims: []Claim{invariant("FORMAT")}, Scenarios: []string{"steady-state", "plugin-hostile-detail"},
		},
		{
			Check: conformance.Check{
				ID: "HR-TIME-RFC3339", Profile: conformance.Core, Title: "Times are RFC 3339 with a zone",
				Rule:        "lastChecked is an RFC 3339 instant with a zone.",
				Source:      sourceReporter + ", message (S0-08)",
				Consequence: "No reader on another node can tell how old the report is.",
			},
			Claims: []Claim{seen("FORMAT", "lastChecked is not RFC 3339")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-DETAIL-BOUND", Profile: conformance.Core, Title: "The detail is bounded",
				Rule:        "detail has at most 1024 characters, however much the plugin says.",
				Source:      sourceReporter + ", detail (S0-06)",
				Consequence: "One plugin fills the object that every node writes, until etcd refuses it.",
			},
			Claims: []Claim{seen("FORMAT", ": detail of ", "message of ")}, Scenarios: []string{"plugin-hostile-detail", "typed-texts-visible"},
		},
		{
			Check: conformance.Check{
				ID: "HR-DETAIL-PRINTABLE", Profile: conformance.Core, Title: "The detail is printable",
				Rule:        "detail is valid UTF-8 without control characters.",
				Source:      sourceReporter + ", detail (S0-06)",
				Consequence: "A plugin can write control characters to the terminal of a reader of the condition.",
			},
			Claims: []Claim{seen("FORMAT", "detail with control characters")}, Scenarios: []string{"plugin-hostile-detail", "typed-texts-visible"},
		},
		{
			Check: conformance.Check{
				ID: "HR-DETAIL-PRESENT", Profile: conformance.Core, Title: "There is a detail exactly where something is wrong",
				Rule:        "An entry that is not healthy has a detail, and one that is healthy has none.",
				Source:      sourceReporter + ", outcome of a probe (S0-05)",
				Consequence: "The administrator learns that something failed, and not what.",
			},
			Claims: []Claim{seen("FORMAT", "not healthy and no detail", "healthy with detail")}, Scenarios: []string{"plugin-unhealthy", "plugin-hangs"},
		},
		{
			Check: conformance.Check{
				ID: "HR-ERROR-WITHOUT-KEK-ID", Profile: conformance.Core, Title: "An error has no kekID",
				Rule:        "An entry with status error has no kekID: the plugin did not answer.",
				Source:      sourceReporter + ", outcome of a probe (S0-05, S0-20)",
				Consequence: "A rotation counts a node whose plugin does not work.",
			},
			Form: scenario.ContractConditions, Claims: []Claim{seen("FORMAT", "error with kekID")}, Scenarios: []string{"plugin-hangs"},
		},
		{
			Check: conformance.Check{
				ID: "HR-TYPED-FORM", Profile: conformance.Core, Title: "Typed reports have their form",
				Rule:        "Each typed report has keyID, a status of Healthy, Unhealthy or Error, lastCheckedTime, a remoteKeyID of 1 to 1024 characters without NUL, and no empty detail.",
				Source:      sourceTyped + " (S0-06)",
				Consequence: "The API server refuses the apply, or readers cannot use it.",
			},
			Form: scenario.ContractHealthReports, Claims: []Claim{invariant("FORMAT")}, Scenarios: []string{"steady-state", "typed-texts-visible", "typed-key-ids-visible"},
		},
		{
			Check: conformance.Check{
				ID: "HR-TYPED-TEXTS", Profile: conformance.Core, Title: "Typed form: every text is visible",
				Rule:        "Empty, multi-line, NUL and very long texts of a plugin are visible within the detection bound, beside the healthy plugin of the node.",
				Source:      sourceTyped + " (S0-05, S0-06)",
				Consequence: "A failure is visible only if its text fits the schema.",
			},
			Claims: []Claim{during("TRUTHFUL-PROBE", "typed-texts-visible"), steps("typed-texts-visible")},
		},
		{
			Check: conformance.Check{
				ID: "HR-TYPED-KEY-IDS", Profile: conformance.Core, Title: "Typed form: every key_id is visible",
				Rule:        "A plugin without a key_id, or with one that does not fit remoteKeyID or is not UTF-8, is visible, and hides no other.",
				Source:      sourceTyped + " (S0-05, S0-09)",
				Consequence: "The API server refuses the apply, and the node is silent.",
			},
			Claims: []Claim{during("TRUTHFUL-PROBE", "typed-key-ids-visible"), steps("typed-key-ids-visible")},
		},
		{
			Check: conformance.Check{
				ID: "HR-TYPED-ERRORS", Profile: conformance.Core, Title: "Typed form: every error is visible",
				Rule:        "A plugin that hangs or answers with an error is visible within the detection bound, although it has no key_id, and hides no other.",
				Source:      sourceTyped + " (S0-05, S0-08)",
				Consequence: "The API server refuses the apply, and the node is silent just when it has something to say.",
			},
			Claims: []Claim{{Invariant: "CADENCE", In: []string{"typed-hang-and-errors-visible"}, Seen: []string{"wrote nothing for"}}, step("typed-hang-and-errors-visible", "steps[1].expect", "steps[3].expect", "steps[5].expect", "steps[7].expect", "steps[11].expect")},
		},
	}
}
