package mutants

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/core"
)

// deciders are operators of the family Lifecycle that switch the encryption of a simulated cluster, too: what the model's laws say of them, the
// invariants and expectations of scenarios must say as well.
func deciders() []Mutant {
	return []Mutant{
		decider("writes-before-all-read", "operator-kms-to-kms", "SWITCH-ORDER"),
		decider("promotes-before-all-have-read", "operator-version-skew", "SWITCH-ORDER"),
		decider("converged-with-a-node-missing", "operator-lagging-node", "SWITCH-ORDER"),
		decider("removes-before-migration", "operator-kms-to-kms", "SWITCH-ORDER"),
		decider("never-migrates", "operator-initial-configuration", "steps[2].expect"),
		decider("teardown-order-reversed", "operator-kms-to-kms", "SWITCH-ORDER"),
		decider("one-plugin-per-pod", "operator-kms-to-kms", "SWITCH-ORDER"),
		decider("plugins-never-end", "operator-downgrade-after-migrating-away", "steps[4].expect"),
		decider("plugins-end-with-the-type", "operator-downgrade-after-migrating-away", "SWITCH-ORDER"),
		decider("missing-credentials-block", "operator-credentials-missing", "steps[11].expect"),
		decider("new-key-while-a-plugin-fails", "operator-key-waits-for-a-healthy-plugin", "steps[6].holds"),
		decider("no-preflight", "operator-preflight-fails", "steps[4].expect"),
		decider("invalid-is-identity", "operator-invalid-configuration", "steps[4].expect"),
		decider("rotation-makes-no-difference", "operator-kek-rotation", "steps[4].expect"),
		decider("prunes-too-early", "operator-prunes", "NO-DATA-LOSS"),
		decider("counts-a-removed-node", "operator-node-removed-while-it-lags", "steps[7].expect"),
		decider("newcomer-gets-the-first-revision", "operator-node-added-during-a-switch", "steps[7].holds"),
		decider("newcomer-gets-no-plugins", "operator-node-added-during-a-switch", "steps[6]"),
		decider("old-revision-old-plugins", "operator-replicaset-rollback", "SWITCH-ORDER"),
		decider("old-revision-old-configuration", "operator-rollback-during-kms-to-kms", "steps[5]"),
		decider("oldest-wins", "operator-initial-configuration", "steps[2].expect"),
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
				eachNode(o, func(n *core.Node) {
					if _, reports := n.Report[top]; !reports && anyKEK(*o, top) != "" {
						n.Report = map[uint64]core.Entry{top: {KEK: anyKEK(*o, top), Healthy: true, Checked: now}}
					}
				})
			})),
		{
			Name: "never-prunes", Scenario: "operator-rollback-refused", Caught: []string{"steps[9]"},
			Mistake: "revisions that are kept for ever: a rollback goes to one whose key nobody has had for a year",
			Virtual: setUp(live.TestHooks{Decide: func(o core.Observed, opts core.Options, now time.Time) core.Plan {
				p := core.Decide(o, opts, now)
				drop[core.Prune](&p)
				return p
			}}),
		},
	}
}

const (
	converged = "OPERATOR-CONVERGENCE"
	heldBack  = "operator-kek-rotation-held-back"
)

// agreeing is an operator that takes reports of the newest key for others while it asks whether all nodes agree on a kekID. What else it decides by
// reports is right.
func agreeing(name, scenario, mistake string, change func(top uint64, o *core.Observed, now time.Time)) Mutant {
	wrong := mistaking(func(o *core.Observed, _ *core.Options, now time.Time) {
		if top, cur := newest(*o); top.ID == cur.Writes() {
			change(top.ID, o, now)
		}
	})
	return Mutant{Name: name, Scenario: scenario, Mistake: mistake, Caught: []string{converged},
		Virtual: func() virtual.Options { return virtual.Options{TestHooks: live.TestHooks{Decide: wrong().Decide}} }}
}

// inConditions is a mistake that its scenario brings out in the form of conditions alone.
func inConditions(m Mutant) Mutant {
	m.Contract = scenario.ContractConditions
	return m
}

// eachEntryOf changes what is reported of the plugin of a key.
func eachEntryOf(o *core.Observed, id uint64, change func(*core.Entry)) {
	eachNode(o, func(n *core.Node) {
		if e, reports := n.Report[id]; reports {
			change(&e)
			n.Report[id] = e
		}
	})
}

// anyKEK is a kekID that some node reports of the plugin of a key; empty if none does.
func anyKEK(o core.Observed, id uint64) string {
	for _, name := range nodesOf(o) {
		if kek := o.Nodes[name].Report[id].KEK; kek != "" {
			return kek
		}
	}
	return ""
}

// decider is one of them, in a scenario that brings it out.
func decider(name, scenario string, caught ...string) Mutant {
	m := Mutant{Name: name + "-simulated", Scenario: scenario, Caught: caught}
	all := lifecycles()
	if i := slices.IndexFunc(all, func(l Mutant) bool { return l.Name == name }); i >= 0 {
		m.Mistake = all[i].Mistake
		m.Virtual = simulating(all[i].Wrong)
	}
	return m
}
