package mutants

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// rollups is aggregators that draw a wrong conclusion from the reports.
func rollups() []Mutant {
	return []Mutant{
		{
			Name: "absent-is-broken", Scenario: "cold-start-reporter-last", Caught: []string{"ABSENCE-IS-NOT-BROKEN"},
			Mistake: "a node without a report counted as one that failed: every cold start and every new node degrades the cluster",
			Virtual: overlooking(absentIsBroken),
		},
		{
			Name: "typed-absent-is-broken", Scenario: "typed-crds-default", Contract: scenario.ContractHealthReports, Caught: []string{"ABSENCE-IS-NOT-BROKEN"},
			Mistake: "the same where the CRD has no field for reports: a feature gate that is off degrades the cluster",
			Virtual: overlooking(absentIsBroken),
		},
		{
			Name: "reads-one-form", Contract: scenario.ContractConditions, Scenario: "reports-change-form", Caught: []string{"ROLLUP-TRUTH", "CONVERGENCE"},
			Mistake: "reports of one form alone, as if all nodes were upgraded at once: the first node with a newer reporter counts as one that does not report",
			Virtual: overlooking(func(in *core.Input) {
				maps.DeleteFunc(in.Observed.Reports, func(_ string, r core.Report) bool { return len(r.Typed) > 0 })
			}),
		},
		{
			Name: "expects-who-reports", Scenario: "cold-start-reporter-last", Caught: []string{"ROLLUP-TRUTH", "CONVERGENCE"},
			Mistake: "the nodes taken from the reports: one that never reported is missed by nobody, and the rotation goes on without it",
			Virtual: overlooking(func(in *core.Input) {
				in.Nodes = maps.Clone(in.Nodes)
				maps.DeleteFunc(in.Nodes, func(node string, _ time.Time) bool { _, reported := in.Observed.Reports[node]; return !reported })
			}),
		},
		{
			Name: "converged-by-majority", Scenario: "reporter-killed", Caught: []string{"CONVERGENCE"},
			Mistake: "converged when those agree that are heard: the key is rotated away under the node that is silent",
			Virtual: saying(func(_ core.Input, c *core.Condition) {
				if c.Type == contract.ConditionProgressing && c.Reason == contract.ReasonNotConverged {
					c.Reason = contract.ReasonAsExpected
				}
			}),
		},
		{
			Name: "rotation-unseen", Scenario: "kek-rotation", Caught: []string{"CONVERGENCE", "ROLLUP-TRUTH"},
			Mistake: "only the first node's kekID is looked at: while the others are still on the old KEK the rotation is called done",
			Virtual: overlooking(func(in *core.Input) {
				kek := ""
				for _, node := range slices.Sorted(maps.Keys(in.Observed.Reports)) {
					for i, e := range in.Observed.Reports[node].Entries {
						kek = cmp.Or(kek, e.KEKID)
						in.Observed.Reports[node].Entries[i].KEKID = cmp.Or(kek, e.KEKID)
					}
				}
			}),
		},
		{
			Name: "error-before-unhealthy", Scenario: "plugins-fail-in-both-ways", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "the rows of the table in another order: with both on the cluster the reason is that of the error",
			Virtual: saying(func(_ core.Input, c *core.Condition) {
				if c.Reason == contract.ReasonPluginUnhealthy && strings.Contains(c.Message, "error: ") {
					c.Reason = contract.ReasonPluginUnreachable
				}
			}),
		},
		{
			Name: "names-the-first", Scenario: "plugin-unusable-answers", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "return in the loop over the nodes: the message names the first that is affected and nobody learns of the others",
			Virtual: saying(func(_ core.Input, c *core.Condition) { c.Message, _, _ = strings.Cut(c.Message, "\n") }),
		},
		{
			Name: "healthy-unsaid", Scenario: "steady-state", Caught: []string{"steps[2].holds"},
			Mistake: "a message for what is broken alone: that all plugins were asked and have answered cannot be told from that nobody asked them",
			Virtual: saying(func(_ core.Input, c *core.Condition) {
				if c.Reason == contract.ReasonAsExpected {
					c.Message = "All is well"
				}
			}),
		},
		{
			Name: "message-unbounded", Scenario: "plugins-fail-in-both-ways", Caught: []string{"ROLLUP-TRUTH"}, Virtual: misdeciding(unbounded),
			Mistake: "all details joined, with no bound: the ClusterOperator of a large cluster is as long as all its plugins have to say",
		},
		{
			Name: "stale-is-broken", Scenario: "failures-nobody-waits-for", Caught: []string{"ROLLUP-TRUTH", "FALSE-ALARM"},
			Mistake: "no news taken for bad news: a reporter that was killed degrades a cluster whose plugins all work",
			Virtual: saying(func(_ core.Input, c *core.Condition) {
				if c.Reason == contract.ReasonReportStale {
					c.Status, c.Reason = core.True, contract.ReasonPluginUnreachable
				}
			}),
		},
		{
			Name: "outage-is-broken", Scenario: "service-load-balancer-black-hole", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "a failure of all nodes at once taken for that of their plugins: the load balancer that all reports pass is what failed",
			Virtual: saying(func(_ core.Input, c *core.Condition) {
				if c.Reason == contract.ReasonReportStale && strings.Count(c.Message, "\n") >= 2 {
					c.Status, c.Reason = core.True, contract.ReasonPluginUnreachable
				}
			}),
		},
		{
			Name: "available-with-any-key", Scenario: "plugin-hangs", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "available while any node can encrypt: an API server without its write key refuses every write of a secret",
			Virtual: saying(func(in core.Input, c *core.Condition) {
				if c.Type == contract.ConditionAvailable && c.Status == core.False {
					c.Status, c.Reason, c.Message = core.True, contract.ReasonAsExpected, fmt.Sprintf("%d nodes report", len(in.Nodes))
				}
			}),
		},
		{
			Name: "read-key-counts-for-writes", Scenario: "plugin-hangs-beside-another", Caught: []string{"ROLLUP-TRUTH", "steps[2].holds"},
			Mistake: "unavailable as soon as any plugin fails, also one that only old data needs",
			Virtual: saying(func(in core.Input, c *core.Condition) {
				if c.Type == contract.ConditionAvailable && failing(in) {
					c.Status, c.Reason = core.False, contract.ReasonNoUsableWriteKey
				}
			}),
		},
		{
			Name: "malformed-is-skipped", Scenario: "report-that-cannot-be-believed", Caught: []string{"ROLLUP-TRUTH"},
			Mistake: "continue after a decoding error: a report that nobody can read is one that nobody misses",
			Virtual: saying(func(_ core.Input, c *core.Condition) {
				if c.Reason == contract.ReasonReportMalformed {
					c.Status, c.Reason = core.False, contract.ReasonAsExpected
				}
			}),
		},
	}
}

func failing(in core.Input) bool {
	for _, r := range in.Observed.Reports {
		if slices.ContainsFunc(r.Entries, func(e contract.Entry) bool { return e.Status != contract.StatusHealthy }) {
			return true
		}
	}
	return false
}

// unbounded puts every detail whole into the message of KMSPluginsDegraded.
func unbounded(in core.Input, d *core.Decision) {
	var lines []string
	for _, node := range slices.Sorted(maps.Keys(in.Observed.Reports)) {
		for _, e := range in.Observed.Reports[node].Entries {
			if e.Status != contract.StatusHealthy {
				lines = append(lines, node+"/"+e.KeyID+": "+string(e.Status)+": "+e.Detail)
			}
		}
	}
	if len(lines) == 0 || len(d.Rollups) == 0 {
		return
	}
	wanted := slices.Clone(d.Rollups)
	wanted[0].Message = strings.Join(lines, "\n")
	*d = d.Say(in, wanted)
}

// absentIsBroken takes a node that has not reported for one that failed.
func absentIsBroken(in *core.Input) {
	for node := range in.Nodes {
		if _, reported := in.Observed.Reports[node]; !reported {
			in.Observed.Reports[node] = core.Report{Entries: []contract.Entry{{KeyID: "1", Status: contract.StatusError, LastChecked: in.Now, Detail: "no report"}}}
		}
	}
}
