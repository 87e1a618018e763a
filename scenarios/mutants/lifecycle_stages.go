package mutants

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/model"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// lifecycleStages go on too early, or from a wrong stage.
func lifecycleStages() []Mutant {
	return []Mutant{
		{
			Name: "writes-before-all-read", Caught: []string{"READABLE"},
			Mistake: "a new key written at once, in one revision: API servers that have not loaded it yet cannot read what the others write",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, cur := newest(o)
				replace(p, func(c core.CreateConfig) []core.Action {
					if !slices.Contains(cur.Keys, top.ID) {
						c.Config.Keys = slices.Concat([]uint64{top.ID}, slices.DeleteFunc(c.Config.Keys, func(id uint64) bool { return id == top.ID }))
					}
					return []core.Action{c}
				})
			}),
		},
		{
			Name: "promotes-before-all-have-read", Caught: []string{"READABLE"},
			Mistake: "converged when any API server has the newest configuration: the key writes before the slow ones can read it",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				_, cur := newest(*o)
				for _, n := range o.Nodes {
					if n.Up && n.Loaded == cur.Revision {
						eachNode(o, func(n *core.Node) { n.Loaded = cur.Revision })
						return
					}
				}
			}),
		},
		{
			Name: "converged-with-a-node-missing", Caught: []string{"READABLE"},
			Mistake: "only API servers that answer are looked at: one that is down starts later with the configuration that it has on disk",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				for name, n := range o.Nodes {
					if !n.Up {
						delete(o.Nodes, name)
					}
				}
			}),
		},
		{
			Name: "removes-before-migration", Caught: []string{"NEWEST-READS"},
			Mistake: "the old key taken out as soon as the new one writes: what was written before is lost to everybody",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				replace(p, func(m core.Migrate) []core.Action {
					if _, cur := newest(o); len(cur.Keys) > 1 {
						return []core.Action{core.CreateConfig{Config: revision.Config{Revision: cur.Revision + 1, Keys: []uint64{m.Attempt.Key}}}}
					}
					return []core.Action{m}
				})
			}),
		},
		{
			Name: "migration-misses-the-last-page", Caught: []string{"NEWEST-READS"},
			Mistake: "a list in pages whose last, shorter one is never asked for",
			Wrong: func() model.Subject {
				s := model.Good()
				s.Skips = func(i, n int) bool { return i == n-1 }
				return s
			},
		},
		{
			Name: "any-migration-counts", Caught: []string{"NEWEST-READS"},
			Mistake: "a flag that a migration is done, without saying which: the one for the key before ends, and the new key is called migrated",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				top, _ := newest(*o)
				if a := o.Migration.Attempt; o.Migration.Done && a.Key != top.ID {
					o.Migration.Attempt = core.Attempt{Key: top.ID, KEK: top.Converged.KEK, Since: top.Converged.Since}
				}
			}),
		},
		{
			Name: "prunes-too-early", Caught: []string{"NEWEST-READS"},
			Mistake: "every key that does not write is pruned, as if nothing were under it any more",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, cur := newest(o)
				for _, k := range o.Keys {
					if cur.Writes() == top.ID && k.ID != top.ID {
						p.Actions = append(p.Actions, core.Prune{Keys: []uint64{k.ID}})
					}
				}
			}),
		},
		{
			Name: "never-migrates", Caught: []string{"CONVERGES"},
			Mistake: "data left to be rewritten by whoever updates it next: objects that nobody touches stay under the old key for ever",
			Wrong:   planning(func(_ core.Observed, p *core.Plan, _ time.Time) { drop[core.Migrate](p) }),
		},
	}
}
