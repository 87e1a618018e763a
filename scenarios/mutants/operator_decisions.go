package mutants

import (
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/scenarios/mutants/decisions"
)

// deciders are operators that decide wrongly. Those of mutants/decisions break laws of the model of a cluster, too.
func deciders() []Mutant {
	var all []Mutant
	for _, w := range decisions.All() {
		all = append(all, Mutant{Name: w.Name + "-simulated", Scenario: w.Scenario, Mistake: w.Mistake, Caught: w.Caught, Virtual: simulating(w.Operator)})
	}
	return append(all,
		Mutant{
			Name: "teardown-order-reversed-simulated", Scenario: "operator-kms-to-kms", Caught: []string{"SWITCH-ORDER"},
			Mistake: "plugins ended before the reporters that ask them: each switch ends with alarms about plugins that nobody needs",
			Virtual: setUp(live.TestHooks{ReportersEndLast: true}),
		},
		agreeing("converged-by-the-first-node", heldBack, "the first node's kekID taken for all: the plugin of another still has the old KEK, and what that encrypts is called migrated",
			func(top uint64, o *core.Observed, _ time.Time) {
				eachEntryOf(o, top, func(e *core.Entry) { e.KEK = anyKEK(*o, top) })
			}),
		agreeing("converged-although-unhealthy", heldBack, "the status of a report not looked at: a plugin that says that it cannot encrypt agrees all the same",
			func(top uint64, o *core.Observed, _ time.Time) {
				eachEntryOf(o, top, func(e *core.Entry) { e.Healthy = e.Healthy || e.KEK != "" })
			}),
		agreeing("converged-although-stale", heldBack, "lastChecked not looked at: what a node reported before it fell silent agrees for ever",
			func(top uint64, o *core.Observed, now time.Time) {
				eachEntryOf(o, top, func(e *core.Entry) { e.Checked = now })
			}),
		agreeing("converged-although-empty", heldBack, "empty kekIDs left out of the comparison: a plugin that answers nothing contradicts nobody",
			func(top uint64, o *core.Observed, _ time.Time) {
				eachEntryOf(o, top, func(e *core.Entry) {
					if e.KEK == "" {
						e.KEK, e.Healthy = anyKEK(*o, top), true
					}
				})
			}),
		agreeing("converged-on-a-single-node", "operator-kek-rotation-single-node", "a single node has nobody to disagree with: its report is taken as it is",
			func(top uint64, o *core.Observed, now time.Time) {
				if len(o.Nodes) == 1 {
					eachEntryOf(o, top, func(e *core.Entry) { e.Checked, e.Healthy = now, true })
				}
			}),
		inConditions(agreeing("converged-without-the-absent", "operator-kek-rotation-report-removed", "the reports that there are compared: a node without one contradicts nobody",
			func(top uint64, o *core.Observed, now time.Time) {
				decisions.EachNode(o, func(n *core.Node) {
					if _, reports := n.Report[top]; !reports && anyKEK(*o, top) != "" {
						n.Report = map[uint64]core.Entry{top: {KEK: anyKEK(*o, top), Healthy: true, Checked: now}}
					}
				})
			})),
		agreeing("agrees-on-the-older-key", besideOlder, "the newest kekID that a node reports, of whichever key: what an older plugin says of its KEK is taken for the newest key's",
			func(top uint64, o *core.Observed, _ time.Time) {
				if older := anyKEK(*o, top-1); older != "" {
					eachEntryOf(o, top, func(e *core.Entry) { e.KEK = older })
				}
			}),
		stuck(agreeing("agrees-over-all-keys", besideOlder, "all kekIDs of all reports compared: while the plugin of an older key reports another one, nobody ever agrees", disagreeing(false))),
		stuck(inTypedForm(agreeing("agrees-over-all-entries", "operator-rotation-beside-old-entries",
			"entries of older keys compared as well, also one that nobody writes any more: a rotation is never followed", disagreeing(true)))),
		Mutant{
			Name: "terminating-pods-do-not-count", Scenario: "operator-pods-serve-on", Caught: []string{"SWITCH-ORDER"},
			Mistake: "a roll-out over as soon as each node has a ready pod of the newest revision: the pods before serve on while they are deleted, and cannot read what the new ones write",
			Virtual: simulating(decisions.Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				decisions.EachNode(o, func(n *core.Node) { n.Terminating = false })
			})),
		},
		Mutant{
			Name: "read-key-goes-at-once", Scenario: "operator-etcd-restored", Caught: []string{"NO-DATA-LOSS", "steps[11].expect"},
			Mistake: "a configuration of the newest key alone once everything is written anew: a snapshot of etcd of before the switch cannot be read any more",
			Virtual: simulating(decisions.Mistaking(func(_ *core.Observed, opts *core.Options, _ time.Time) { opts.KeepRead = false })),
		},
		Mutant{
			Name: "never-prunes", Scenario: "operator-rollback-refused", Caught: []string{"steps[9]"},
			Mistake: "revisions that are kept for ever: a rollback goes to one whose key nobody has had for a year",
			Virtual: simulating(decisions.Planning(func(_ core.Observed, p *core.Plan, _ time.Time) { decisions.Drop[core.Prune](p) })),
		})
}

const (
	converged = "OPERATOR-CONVERGENCE"
	heldBack  = "operator-kek-rotation-held-back"
	// besideOlder is a rotation while the plugin of an older key reports.
	besideOlder = "operator-rotation-beside-an-older-key"
)

// agreeing is an operator that takes reports of the newest key for others while it asks whether all nodes agree on a kekID. What else it decides by
// reports is right.
func agreeing(name, scenario, mistake string, change func(top uint64, o *core.Observed, now time.Time)) Mutant {
	wrong := decisions.Mistaking(func(o *core.Observed, _ *core.Options, now time.Time) {
		if top, cur := decisions.Newest(*o); top.ID == cur.Writes() {
			change(top.ID, o, now)
		}
	})
	return Mutant{Name: name, Scenario: scenario, Mistake: mistake, Caught: []string{converged}, Virtual: simulating(wrong)}
}

// inConditions is a mistake that its scenario brings out in the form of conditions alone.
func inConditions(m Mutant) Mutant {
	m.Contract = scenario.ContractConditions
	return m
}

// inTypedForm is a mistake that its scenario brings out in the typed form alone.
func inTypedForm(m Mutant) Mutant {
	m.Contract = scenario.ContractHealthReports
	return m
}

// stuck is a mistake by which a switch or a rotation does not end.
func stuck(m Mutant) Mutant {
	m.Caught = []string{"steps[8].expect"}
	return m
}

// disagreeing hides reports of the newest key while those of another one, or of one that is no longer configured, have another kekID.
func disagreeing(gone bool) func(top uint64, o *core.Observed, now time.Time) {
	return func(top uint64, o *core.Observed, _ time.Time) {
		_, cur := decisions.Newest(*o)
		kek, other := anyKEK(*o, top), false
		for _, n := range o.Nodes {
			for id, e := range n.Report {
				other = other || e.KEK != kek && !(gone && slices.Contains(cur.Keys, id))
			}
		}
		if other {
			decisions.EachNode(o, func(n *core.Node) { delete(n.Report, top) })
		}
	}
}

// eachEntryOf changes what is reported of the plugin of a key.
func eachEntryOf(o *core.Observed, id uint64, change func(*core.Entry)) {
	decisions.EachNode(o, func(n *core.Node) {
		if e, reports := n.Report[id]; reports {
			change(&e)
			n.Report[id] = e
		}
	})
}

// anyKEK is a kekID that some node reports of the plugin of a key; empty if none does.
func anyKEK(o core.Observed, id uint64) string {
	for _, name := range slices.Sorted(maps.Keys(o.Nodes)) {
		if kek := o.Nodes[name].Report[id].KEK; kek != "" {
			return kek
		}
	}
	return ""
}
