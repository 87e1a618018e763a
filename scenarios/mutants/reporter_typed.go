package mutants

import (
	"maps"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// typed is reporters that write typed reports which the API server refuses: one for each rule of the schema. One entry that is not valid silences all
// plugins of its node.
func typed() []Mutant {
	var out []Mutant
	for _, m := range []struct {
		name, scenario, mistake string
		change                  func(items []any) []any
	}{
		{"typed-kek-id-left-out", "plugin-hangs", "omitempty on a field that the schema requires: a plugin that failed has no key_id, and its whole node falls silent", unanswered(func(r object) { delete(r, "remoteKeyID") })},
		{"typed-kek-id-empty", "plugin-hangs", "the empty key_id of a plugin that did not answer, as it is", unanswered(func(r object) { r["remoteKeyID"] = "" })},
		{"typed-kek-id-too-long", "steady-state", "a key_id that is not bounded: the name of a key in a cloud, with its version and its tags", each(func(r object) { r["remoteKeyID"] = strings.Repeat("k", contract.MaxKEKIDBytes+1) })},
		{"typed-detail-empty", "steady-state", "an empty detail in place of none", each(func(r object) { r["detail"] = "" })},
		{"typed-detail-too-long", "typed-neighbour-stays-fresh", "the text of an error as it came, with every wrapped error", unanswered(func(r object) { r["detail"] = strings.Repeat("x", 1025) })},
		{"typed-status-in-lower-case", "steady-state", "the words of the conditions form in the typed one, whose statuses begin with a capital", each(func(r object) { s, _ := r["status"].(string); r["status"] = strings.ToLower(s) })},
		{"typed-status-invented", "plugin-hangs", "a fourth status for what the three do not say", unanswered(func(r object) { r["status"] = "Timeout" })},
		{"typed-time-left-out", "plugin-hangs", "no lastCheckedTime for a probe that was given up", unanswered(func(r object) { delete(r, "lastCheckedTime") })},
		{"typed-time-without-a-zone", "steady-state", "a time without a zone, which is no date-time", each(func(r object) {
			s, _ := r["lastCheckedTime"].(string)
			r["lastCheckedTime"] = strings.TrimSuffix(s, "Z")
		})},
		{"typed-key-id-empty", "steady-state", "a keyID that is cut out of a path of another shape: nothing is left of it", each(func(r object) { r["keyID"] = "" })},
		{"typed-duplicate-entry", "steady-state", "a plugin that is given twice on the command line is reported twice under one key", func(items []any) []any { return append(items, items[0]) }},
		{"typed-list-empty", "steady-state", "an empty list where there is nothing to report: the schema wants one item at least", func([]any) []any { return []any{} }},
		{"typed-list-too-long", "steady-state", "every socket that was ever seen is reported, and the list holds 200 items", func(items []any) []any {
			for n := range contract.MaxTypedReports {
				first, _ := items[0].(object)
				more := maps.Clone(first)
				more["keyID"] = strconv.Itoa(1000 + n)
				items = append(items, more)
			}
			return items
		}},
		{"typed-unknown-field", "steady-state", "a field of a newer API, which this CRD does not declare", each(func(r object) { r["latency"] = "3ms" })},
	} {
		out = append(out, Mutant{Name: m.name, Scenario: m.scenario, Contract: scenario.ContractHealthReports, Caught: []string{"ACCEPTED", "CADENCE"}, Mistake: m.mistake,
			Virtual: sending(reported(m.change))})
	}
	return append(out, Mutant{Name: "typed-node-name-as-the-host-says", Scenario: "steady-state", Contract: scenario.ContractHealthReports, Caught: []string{"LEAST-PRIVILEGE", "CADENCE"},
		Mistake: "os.Hostname in place of the node's name: for the API server it is another node's entry",
		Virtual: sending(reported(each(func(r object) { s, _ := r["nodeName"].(string); r["nodeName"] = strings.ToUpper(s) })))})
}

// each changes every item that is an object.
func each(change func(item object)) func([]any) []any {
	return func(items []any) []any {
		for _, i := range items {
			if r, ok := i.(object); ok {
				change(r)
			}
		}
		return items
	}
}

// unanswered changes the items of plugins that gave no answer.
func unanswered(change func(item object)) func([]any) []any {
	return each(func(item object) {
		if item["status"] == "Error" {
			change(item)
		}
	})
}

// reported changes the list of items that a reporter applies.
func reported(change func(items []any) []any) func(*outgoing) {
	return func(o *outgoing) {
		edit(o, func(status object) {
			if parent, ok := status["encryptionStatus"].(object); ok {
				if items, ok := parent["healthReports"].([]any); ok && len(items) > 0 {
					parent["healthReports"] = change(items)
				}
			}
		})
	}
}
