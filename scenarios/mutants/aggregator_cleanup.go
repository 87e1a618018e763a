package mutants

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/controller"
	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// cleanups is aggregators that remove too little, too much or too often.
func cleanups() []Mutant {
	return []Mutant{
		{
			Name: "never-cleans-up", Scenario: "node-removed", Caught: []string{"NO-ORPHAN"},
			Mistake: "clean-up left to the reporter that ends: one that is killed with its node cleans nothing up",
			Virtual: misdeciding(func(_ core.Input, d *core.Decision) { d.Remove = core.Removal{} }),
		},
		{
			Name: "oversized-report-kept", Scenario: "reporter-may-not-fill-the-cr", Contract: scenario.ContractConditions, Caught: []string{"steps[6].expect"},
			Mistake: "clean-up of nodes that are gone alone: a report that fills the CR stands for as long as its node does",
			Virtual: misdeciding(func(in core.Input, d *core.Decision) {
				d.Remove.Nodes = slices.DeleteFunc(slices.Clone(d.Remove.Nodes), func(node string) bool { return in.Observed.Reports[node].Oversized })
			}),
		},
		{
			Name: "rollup-kept-after-kms", Scenario: "kms-disabled", Caught: []string{"NO-ORPHAN"},
			Mistake: "an early return when KMS is not active: what the rollups said last stays, and may degrade a cluster that no longer has plugins",
			Virtual: misdeciding(func(_ core.Input, d *core.Decision) { d.Remove.Conditions = nil }),
		},
		{
			Name: "reports-kept-after-kms", Scenario: "kms-disabled", Caught: []string{"NO-ORPHAN"},
			Mistake: "clean-up driven by nodes alone: when KMS is disabled all nodes are still there, and so are their reports",
			Virtual: misdeciding(func(in core.Input, d *core.Decision) {
				if !in.KMSActive {
					d.Remove.Nodes = nil
				}
			}),
		},
		{
			Name: "clean-up-by-prefix", Scenario: "node-removed-beside-a-longer-name", Caught: []string{"OWNERSHIP"},
			Mistake: "strings.HasPrefix(type, prefix+node): with node cp-3 the report of cp-31 goes as well",
			Virtual: misdeciding(func(in core.Input, d *core.Decision) {
				for node := range in.Observed.Reports {
					if slices.ContainsFunc(d.Remove.Nodes, func(gone string) bool { return gone != node && strings.HasPrefix(node, gone) }) {
						d.Remove.Nodes = append(slices.Clone(d.Remove.Nodes), node)
					}
				}
			}),
		},
		{
			Name: "fights-a-live-reporter", Scenario: "node-removed-while-reporter-lingers", Caught: []string{"NO-RESURRECTION"},
			Mistake: "every orphan removed at sight: with a reporter that is still there the two of them write for ever",
			Virtual: misdeciding(func(in core.Input, d *core.Decision) {
				for node := range in.Observed.Reports {
					if _, expected := in.Nodes[node]; !expected && !slices.Contains(d.Remove.Nodes, node) {
						d.Remove.Nodes = append(slices.Clone(d.Remove.Nodes), node)
					}
				}
			}),
		},
		{
			Name: "removes-what-is-stale", Scenario: "reporter-killed", Caught: []string{"OWNERSHIP"},
			Mistake: "stale reports taken for orphans: the node is still expected, and what it said last is lost to whoever looks for the cause",
			Virtual: misdeciding(func(in core.Input, d *core.Decision) {
				for node, r := range in.Observed.Reports {
					for _, e := range r.Entries {
						if in.Now.Sub(e.LastChecked) > 6*in.Interval && !slices.Contains(d.Remove.Nodes, node) {
							d.Remove.Nodes = append(slices.Clone(d.Remove.Nodes), node)
						}
					}
				}
			}),
		},
		{
			Name: "late-clean-up", Scenario: "node-removed", Caught: []string{"NO-ORPHAN"},
			Mistake: "an orphan kept for ten intervals, in case that its node comes back: it is a node that is complained about for so long",
			Virtual: misdeciding(func(in core.Input, d *core.Decision) {
				d.Remove.Nodes = slices.DeleteFunc(slices.Clone(d.Remove.Nodes), func(node string) bool {
					return slices.ContainsFunc(in.Observed.Reports[node].Entries, func(e contract.Entry) bool { return in.Now.Sub(e.LastChecked) < 10*in.Interval })
				})
			}),
		},
		{
			Name: "forgets-rollups-at-start", Scenario: "aggregator-restarted", Caught: []string{"steps[3].never"}, Virtual: forgetful(forgetsRollups),
			Mistake: "an aggregator that removes its own rollups when it starts, to begin clean: the alarm that stood is gone for a moment, and with it the time of its transition",
		},
		{
			Name: "replaces-the-list", Contract: scenario.ContractConditions, Scenario: "node-removed-beside-a-longer-name", Caught: []string{"OWNERSHIP"}, Virtual: replacesTheList,
			Mistake: "a clean-up that writes back the list as it was read, without the orphan: what was written in between is undone",
		},
	}
}

// forgetsRollups removes them in the steps of an aggregator that has no memory yet.
func forgetsRollups(in core.Input, m core.Memory) core.Decision {
	d := core.Step(in, m)
	if reflect.ValueOf(m).IsZero() && len(in.Observed.Reports) > 0 {
		d.WriteRollups, d.Remove.Conditions = false, contract.RollupTypes()
	}
	return d
}

// replacesTheList remembers the conditions of some decisions ago, and puts them back in place of a removal.
func replacesTheList() virtual.Options {
	type condition struct {
		Type               string    `json:"type"`
		Status             string    `json:"status"`
		Reason             string    `json:"reason"`
		Message            string    `json:"message"`
		LastTransitionTime time.Time `json:"lastTransitionTime"`
	}
	seen := map[string]condition{}
	gone := map[string]bool{}
	decides := func(in core.Input, m core.Memory) core.Decision {
		d := core.Step(in, m)
		clear(gone)
		for _, n := range d.Remove.Nodes {
			gone[contract.ConditionType(n)] = true
		}
		for _, c := range in.Observed.Conditions {
			if _, known := seen[c.Type]; !known {
				seen[c.Type] = condition(c)
			}
		}
		return d
	}
	return aggregatesBy(func(a *startingAggregator) {
		a.configure = append(a.configure, func(c *controller.Config) { c.Decide = decides })
		changeRequests(&a.Host, patched(func(o *outgoing) {
			if !strings.Contains(o.MediaType, "json-patch") {
				return
			}
			var list []condition
			for _, t := range slices.Sorted(maps.Keys(seen)) {
				if !gone[t] {
					list = append(list, seen[t])
				}
			}
			o.Body, _ = json.Marshal([]object{{"op": "replace", "path": "/status/conditions", "value": list}})
		}))
	})()
}
