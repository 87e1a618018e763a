package mutants

import (
	"maps"
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/model"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// lifecycleNodes are wrong about nodes that come and go.
func lifecycleNodes() []Mutant {
	return []Mutant{
		{
			Name: "counts-a-removed-node", Caught: []string{"CONVERGES"},
			Mistake: "a list of nodes that only ever grows: each switch waits for a node that somebody removed, for ever",
			Wrong: func() model.Subject {
				known, s := map[string]core.Node{}, model.Good()
				s.Decide = func(o core.Observed, opts core.Options, now time.Time) core.Plan {
					maps.Copy(known, o.Nodes)
					for name, n := range known {
						if _, there := o.Nodes[name]; !there {
							n.Up, n.Unavailable = false, true
							o.Nodes[name] = n
						}
					}
					return core.Decide(o, opts, now)
				}
				return s
			},
		},
		{
			Name: "newcomer-is-not-waited-for", Caught: []string{"READABLE"},
			Mistake: "a node counts from when its API server answers: what it was given to begin with is two revisions old by then, and names no key of what was written since",
			Wrong: mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
				for name, n := range o.Nodes {
					if !n.Up && n.Loaded == 0 {
						delete(o.Nodes, name)
					}
				}
			}),
		},
		{
			Name: "newcomer-gets-the-first-revision", Caught: []string{"READABLE"},
			Mistake: "a template that was made when the cluster was: the API server of a new node cannot read what was written since",
			Wrong: serving(func(o core.Observed, c revision.Config, p revision.PluginConfig) (revision.Config, revision.PluginConfig) {
				if all := byRevision(o.Configs); len(all) > 0 {
					c = all[0]
				}
				return c, p
			}),
		},
		{
			Name: "newcomer-gets-no-plugins", Caught: []string{"READABLE"},
			Mistake: "plugins are the business of whoever switches: a node that joins between two switches has none, and its API server decrypts nothing",
			Wrong: serving(func(_ core.Observed, c revision.Config, _ revision.PluginConfig) (revision.Config, revision.PluginConfig) {
				return c, revision.PluginConfig{}
			}),
		},
	}
}

// serving is an operator that gives new pods, which were not rolled back, something else than the newest.
func serving(change func(core.Observed, revision.Config, revision.PluginConfig) (revision.Config, revision.PluginConfig)) func() model.Subject {
	return func() model.Subject {
		s := model.Good()
		s.Serve = func(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
			c, p := core.Serve(o, back)
			if back > 0 {
				return c, p
			}
			return change(o, c, p)
		}
		return s
	}
}
