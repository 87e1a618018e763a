package decisions

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// stages go on too early, or from a wrong stage.
func stages() []Wrong {
	return []Wrong{
		{
			Name: "writes-before-all-read", Law: "READABLE", Scenario: "operator-kms-to-kms", Caught: []string{"SWITCH-ORDER"},
			Mistake: "a new key written at once, in one revision: API servers that have not loaded it yet cannot read what the others write",
			Operator: Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, cur := Newest(o)
				Replace(p, func(c core.CreateConfig) []core.Action {
					if !slices.Contains(cur.Keys, top.ID) {
						c.Config.Keys = slices.Concat([]uint64{top.ID}, slices.DeleteFunc(c.Config.Keys, func(id uint64) bool { return id == top.ID }))
					}
					return []core.Action{c}
				})
			}),
		},
		{
			Name: "promotes-before-all-have-read", Law: "READABLE", Scenario: "operator-version-skew", Caught: []string{"SWITCH-ORDER"},
			Mistake: "converged when any API server has the newest configuration: the key writes before the slow ones can read it",
			Operator: Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				_, cur := Newest(*o)
				for _, first := range o.Nodes {
					if first.Up && first.Loaded == cur.Revision {
						EachNode(o, func(n *core.Node) { n.Up, n.Loaded, n.Plugins = true, cur.Revision, first.Plugins }) // of a pod that is being replaced nothing is known
						return
					}
				}
			}),
		},
		{
			Name: "converged-with-a-node-missing", Law: "READABLE", Scenario: "operator-lagging-node", Caught: []string{"SWITCH-ORDER"},
			Mistake: "only API servers that answer are looked at: one that is down starts later with the configuration that it has on disk",
			Operator: Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				for name, n := range o.Nodes {
					if !n.Up {
						delete(o.Nodes, name)
					}
				}
			}),
		},
		{
			Name: "removes-before-migration", Law: "NEWEST-READS", Scenario: "operator-kms-to-kms", Caught: []string{"SWITCH-ORDER"},
			Mistake: "the old key taken out as soon as the new one writes: what was written before is lost to everybody",
			Operator: Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				Replace(p, func(m core.Migrate) []core.Action {
					if _, cur := Newest(o); len(cur.Keys) > 1 {
						return []core.Action{core.CreateConfig{Config: revision.Config{Revision: cur.Revision + 1, Keys: []uint64{m.Attempt.Key}}}}
					}
					return []core.Action{m}
				})
			}),
		},
		{
			Name: "prunes-too-early", Law: "NEWEST-READS", Scenario: "operator-prunes", Caught: []string{"NO-DATA-LOSS"},
			Mistake: "every key that does not write is pruned, as if nothing were under it any more",
			Operator: Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, cur := Newest(o)
				for _, k := range o.Keys {
					if cur.Writes() == top.ID && k.ID != top.ID {
						p.Actions = append(p.Actions, core.Prune{Keys: []uint64{k.ID}})
					}
				}
			}),
		},
		{
			Name: "never-migrates", Law: "CONVERGES", Scenario: "operator-initial-configuration", Caught: []string{"steps[2].expect"},
			Mistake:  "data left to be rewritten by whoever updates it next: objects that nobody touches stay under the old key for ever",
			Operator: Planning(func(_ core.Observed, p *core.Plan, _ time.Time) { Drop[core.Migrate](p) }),
		},
	}
}
