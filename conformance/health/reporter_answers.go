package health

import "github.com/kmsharness/kmsharness/conformance"

// reporterAnswers are the rows of the table "Outcome of a probe".
func reporterAnswers() []Check {
	const unusable = "docs/contract.md, The reporter, outcome of a probe [decided here] (S0-05, S3-13)"
	const accepts = "A plugin with which kube-apiserver cannot encrypt is shown as healthy."
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-TRUTHFUL", Profile: conformance.Core, Title: "Each entry is what the plugin answered",
				Rule:        "Each entry has the status and the kekID that the plugin answered at lastChecked; healthz ok with a usable key_id and version is healthy.",
				Source:      sourceReporter + ", outcome of a probe (S0-05)",
				Consequence: "The rollup shows something else than the plugins say.",
			},
			Claims: []Claim{invariant("TRUTHFUL-PROBE")}, Scenarios: []string{"steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-ANSWER-UNHEALTHY", Profile: conformance.Core, Title: "Another healthz is unhealthy",
				Rule:        "A healthz other than ok is unhealthy, with the key_id that the plugin sent and its text as detail.",
				Source:      sourceReporter + ", outcome of a probe (S0-05)",
				Consequence: "A plugin that says that it cannot work is shown as healthy.",
			},
			Claims: []Claim{during("TRUTHFUL-PROBE", "plugin-unhealthy"), steps("plugin-unhealthy")},
		},
		{
			Check: conformance.Check{
				ID: "HR-ANSWER-EXACTLY-OK", Profile: conformance.Core, Title: "Only ok is ok",
				Rule:        "healthz is compared as a whole: a text that contains ok, such as \"the token expired\", is unhealthy.",
				Source:      sourceReporter + ", outcome of a probe (S0-05)",
				Consequence: "A plugin with an expired token is shown as healthy.",
			},
			Claims: []Claim{during("TRUTHFUL-PROBE", "observability-metrics")},
		},
		{
			Check: conformance.Check{
				ID: "HR-SLOW-IS-HEALTHY", Profile: conformance.Core, Title: "A slow answer counts",
				Rule:        "A plugin that answers late, but within the read timeout, is healthy.",
				Source:      sourceReporter + ", probes (S3-12, S3-13)",
				Consequence: "An HSM that is busy is shown as unreachable.",
			},
			Claims: []Claim{during("TRUTHFUL-PROBE", "thales-latency-near-the-deadline"), steps("thales-latency-near-the-deadline")},
		},
		{
			Check: conformance.Check{
				ID: "HR-ANSWER-ERROR", Profile: conformance.Core, Title: "An RPC error is an error with its code",
				Rule:        "A gRPC error is reported as error, without kekID, and with its code and text as detail.",
				Source:      sourceReporter + ", outcome of a probe (S0-05, S3-14)",
				Consequence: "A refusal cannot be distinguished from a timeout.",
			},
			Claims: []Claim{
				{Invariant: "TRUTHFUL-PROBE", In: []string{"plugin-grpc-errors"}, Seen: []string{"but the detail does not name its code"}}, during("TRUTHFUL-PROBE", "plugin-grpc-errors"), steps("plugin-grpc-errors"),
			},
		},
		{
			Check: conformance.Check{
				ID: "HR-ANSWER-NIL", Profile: conformance.Core, Title: "A nil response is not healthy",
				Rule:        "A response without content is an error or unhealthy, and never the answer of before.",
				Source:      sourceReporter + ", outcome of a probe (S0-05)",
				Consequence: accepts,
			},
			Claims: []Claim{step("typed-hang-and-errors-visible", "steps[9].expect"), during("TRUTHFUL-PROBE", "typed-hang-and-errors-visible")},
		},
		{
			Check: conformance.Check{
				ID: "HR-ANSWER-KEY-ID-EMPTY", Profile: conformance.Robustness, Title: "ok without key_id is unhealthy",
				Rule: "healthz ok with an empty key_id is unhealthy, with a detail that says so.", Source: unusable, Consequence: accepts,
			},
			House: true, Claims: []Claim{{Invariant: "TRUTHFUL-PROBE", In: []string{"plugin-unusable-answers"}, Node: "cp-1"}, step("plugin-unusable-answers", "steps[1].expect", "steps[2].holds")},
		},
		{
			Check: conformance.Check{
				ID: "HR-ANSWER-KEY-ID-OVERSIZED", Profile: conformance.Robustness, Title: "ok with an oversized key_id is unhealthy",
				Rule: "healthz ok with a key_id of more than 1024 bytes is unhealthy, with a detail that says so.", Source: unusable, Consequence: accepts,
			},
			House: true, Claims: []Claim{{Invariant: "TRUTHFUL-PROBE", In: []string{"plugin-unusable-answers"}, Node: "cp-2"}},
		},
		{
			Check: conformance.Check{
				ID: "HR-ANSWER-VERSION", Profile: conformance.Robustness, Title: "ok with another version is unhealthy",
				Rule: "healthz ok with a version other than v2 and v2beta1 is unhealthy, with a detail that says so.", Source: unusable, Consequence: accepts,
			},
			House: true, Claims: []Claim{{Invariant: "TRUTHFUL-PROBE", In: []string{"plugin-unusable-answers"}, Node: "cp-3"}},
		},
		{
			Check: conformance.Check{
				ID: "HR-KEK-ID", Profile: conformance.Core, Title: "kekID is key_id as it came",
				Rule:        "kekID is the key_id of that answer, to its last byte; keyID is the number of the socket.",
				Source:      sourceReporter + ", outcome of a probe; Names that must not be confused (S0-09, S3-10)",
				Consequence: "A rotation is called done before all nodes use the new key, or never.",
			},
			Claims: []Claim{seen("TRUTHFUL-PROBE", ", another kekID"), steps("aws-rotation-does-not-show")},
		},
		{
			Check: conformance.Check{
				ID: "HR-DETAIL-TEXT", Profile: conformance.Core, Title: "The detail is what the plugin said",
				Rule:        "detail has the text of healthz, or the code and the text of the gRPC error.",
				Source:      sourceReporter + ", outcome of a probe (S0-05, S3-15)",
				Consequence: "The administrator learns that something failed, and not what.",
			},
			Claims:    []Claim{seen("TRUTHFUL-PROBE", "but the detail does not name its code", "but the detail does not tell its healthz"), steps("vault-token-expires")},
			Scenarios: []string{"vault-token-expires", "plugin-unhealthy"},
		},
		{
			Check: conformance.Check{
				ID: "HR-HOSTILE-TEXT", Profile: conformance.Core, Title: "Hostile text hides nothing",
				Rule:        "Whatever text a plugin answers with, it is reported as not healthy within the detection bound, and the other plugins stay healthy.",
				Source:      sourceReporter + ", detail; The typed form of the same report (S0-06)",
				Consequence: "A plugin decides what is said about others, or silences its node.",
			},
			Claims: []Claim{during("TRUTHFUL-PROBE", "plugin-hostile-detail"), steps("plugin-hostile-detail")},
		},
	}
}
