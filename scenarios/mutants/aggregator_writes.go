package mutants

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// aggregating is aggregators that write too much, as somebody else, or that unite wrongly.
func aggregating() []Mutant {
	return []Mutant{
		{
			Name: "writes-in-a-steady-state", Scenario: "steady-state", Caught: []string{"QUIET"},
			Mistake: "an apply in every reconcile, since it is idempotent: it happens with every report of every node",
			Virtual: misdeciding(func(_ core.Input, d *core.Decision) { d.WriteRollups = len(d.Rollups) > 0 }),
		},
		{
			Name: "age-in-the-message", Scenario: "failures-nobody-waits-for", Caught: []string{"QUIET"},
			Mistake: "\"checked at …\" in a rollup's message: the text changes with every report, and the aggregator writes with every report",
			Virtual: saying(func(in core.Input, c *core.Condition) {
				var last time.Time
				for _, r := range in.Observed.Reports {
					for _, e := range r.Entries {
						if e.LastChecked.After(last) {
							last = e.LastChecked
						}
					}
				}
				if c.Status == core.True {
					c.Message += " (checked " + contract.FormatTime(last) + ")"
				}
			}),
		},
		{
			Name: "reports-reach-the-cluster-operator", Contract: scenario.ContractConditions, Scenario: "steady-state", Caught: []string{"UNION"}, Virtual: misdeciding(leaks),
			Mistake: "every condition of the CR united, whatever its suffix: the reports of all nodes stand on the ClusterOperator",
		},
		{
			Name: "own-conditions-only", Scenario: "foreign-conditions-are-left-alone", Caught: []string{"UNION"},
			Mistake: "a ClusterOperator made of the aggregator's own rollups: what other controllers say is overwritten",
			Virtual: misdeciding(func(in core.Input, d *core.Decision) {
				in.Observed.Conditions = slices.DeleteFunc(slices.Clone(in.Observed.Conditions), func(c core.Condition) bool { return !strings.HasPrefix(c.Type, "KMS") })
				d.ClusterOperator, d.WriteClusterOperator = d.Say(in, d.Rollups).ClusterOperator, d.Say(in, d.Rollups).WriteClusterOperator
			}),
		},
		{
			Name: "cluster-operator-forgotten", Scenario: "plugin-unhealthy", Caught: []string{"UNION", "steps[1].expect"},
			Mistake: "rollups on the CR and nothing else: the administrator who asks for the cluster's operators sees nothing",
			Virtual: misdeciding(func(_ core.Input, d *core.Decision) { d.WriteClusterOperator = false }),
		},
		{
			Name: "status-as-a-go-boolean", Scenario: "cluster-operator-printed", Caught: []string{"steps[1]"}, Virtual: aggregatesBy(booleans),
			Mistake: "the text of a bool for the status of a condition, which is a string to the API server: oc get co shows true, and who compares with True sees that nothing is degraded",
		},
		{
			Name: "takes-over-all-conditions", Scenario: "foreign-conditions-are-left-alone", Caught: []string{"OWNERSHIP"}, Virtual: misdeciding(takesOver),
			Mistake: "force without ownership: the aggregator applies the whole list as it read it, and so owns the conditions of everybody",
		},
		{
			Name: "manager-of-the-library", Scenario: "plugin-unhealthy", Caught: []string{"OWNERSHIP"},
			Mistake: "a field manager that was never set: the client library's default is shared with every other controller that forgot it",
			Virtual: aggregatesBy(func(a *startingAggregator) {
				changeRequests(&a.Host, patched(func(o *outgoing) { o.FieldManager = "unknown" }))
			}),
		},
		{
			Name: "two-leaders", Scenario: "two-aggregators-one-speaks", Caught: []string{"QUIET"}, Virtual: aggregatesBy(func(a *startingAggregator) { a.args = append(a.args, "--leader-elect=false") }),
			Mistake: "replicas without leader election: all of them decide, and all of them write",
		},
		{
			Name: "stale-cache-after-handover", Scenario: "aggregator-handed-over", Caught: []string{"ROLLUP-TRUTH"}, Virtual: deciding(firstView),
			Mistake: "a new leader that decides from what it listed when it started, long before it was in charge",
		},
		{
			Name: "rollup-by-hand", Scenario: "plugin-flaps", Caught: []string{"ROLLUP-TRUTH"}, Virtual: misdeciding(latches),
			Mistake: "an alarm that only an administrator may reset: once True it stays",
		},
	}
}

// leaks adds the reports as sources to the ClusterOperator's message.
func leaks(in core.Input, d *core.Decision) {
	d.ClusterOperator = slices.Clone(d.ClusterOperator)
	for i := range d.ClusterOperator {
		for _, c := range in.Observed.Conditions {
			if _, isReport := contract.NodeOfCondition(c.Type); isReport {
				d.ClusterOperator[i].Message += fmt.Sprintf("\n%s: %s", c.Type, c.Reason)
			}
		}
		d.WriteClusterOperator = d.WriteClusterOperator || !slices.ContainsFunc(in.ClusterOperator, func(c core.Condition) bool {
			return c.Type == d.ClusterOperator[i].Type && c.Message == d.ClusterOperator[i].Message
		})
	}
}

// takesOver applies what others said along with the rollups.
func takesOver(in core.Input, d *core.Decision) {
	if !d.WriteRollups {
		return
	}
	for _, c := range in.Observed.Conditions {
		if !slices.Contains(contract.RollupTypes(), c.Type) {
			d.Rollups = append(slices.Clone(d.Rollups), c)
		}
	}
}

// firstView decides from the reports that stood when it was asked first.
func firstView() decide {
	var first map[string]core.Report
	return func(in core.Input, m core.Memory) core.Decision {
		if first == nil && len(in.Observed.Reports) == len(in.Nodes) {
			first = in.Observed.Reports
		}
		if first != nil {
			in = deep(in)
			for node, r := range first {
				for i := range r.Entries {
					r.Entries[i].LastChecked = in.Now
				}
				in.Observed.Reports[node] = r
			}
		}
		return core.Step(in, m)
	}
}

// latches keeps KMSPluginsDegraded True.
func latches(in core.Input, d *core.Decision) {
	for _, c := range in.Observed.Conditions {
		if c.Type == contract.ConditionDegraded && c.Status == core.True && len(d.Rollups) > 0 && d.Rollups[0].Status != core.True {
			*d = d.Say(in, append([]core.Condition{c}, d.Rollups[1:]...))
		}
	}
}

// booleans writes the conditions of the ClusterOperator in small letters.
func booleans(a *startingAggregator) {
	changeRequests(&a.Host, func(o *outgoing) {
		if o.Name != "kube-apiserver" || o.Subresource != "status" {
			return
		}
		edit(o, func(status object) {
			list, _ := status["conditions"].([]any)
			each(func(c object) { c["status"] = strings.ToLower(fmt.Sprint(c["status"])) })(list)
		})
	})
}
