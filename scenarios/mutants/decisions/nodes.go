package decisions

import (
	"maps"
	"time"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// nodes are wrong about nodes that come and go.
func nodes() []Wrong {
	return []Wrong{
		{
			Name: "counts-a-removed-node", Law: "CONVERGES", Scenario: "operator-node-removed-while-it-lags", Caught: []string{"steps[7].expect"},
			Mistake: "a list of nodes that only ever grows: each switch waits for a node that somebody removed, for ever",
			Operator: func() Operator {
				known := map[string]core.Node{}
				return Mistaking(func(o *core.Observed, _ *core.Options, _ time.Time) {
					maps.Copy(known, o.Nodes)
					for name, n := range known {
						if _, there := o.Nodes[name]; !there {
							n.Up, n.Unavailable = false, true
							o.Nodes[name] = n
						}
					}
				})()
			},
		},
		{
			Name: "newcomer-gets-the-first-revision", Law: "READABLE", Scenario: "operator-node-added-during-a-switch", Caught: []string{"steps[7].holds"},
			Mistake: "a template that was made when the cluster was: the API server of a new node cannot read what was written since",
			Operator: toNewPods(func(o core.Observed, c revision.Config, p revision.PluginConfig) (revision.Config, revision.PluginConfig) {
				if all := byRevision(o.Configs); len(all) > 0 {
					c = all[0]
				}
				return c, p
			}),
		},
		{
			Name: "newcomer-gets-no-plugins", Law: "READABLE", Scenario: "operator-node-added-during-a-switch", Caught: []string{"steps[6]"},
			Mistake: "plugins are the business of whoever switches: a node that joins between two switches has none, and its API server decrypts nothing",
			Operator: toNewPods(func(_ core.Observed, c revision.Config, _ revision.PluginConfig) (revision.Config, revision.PluginConfig) {
				return c, revision.PluginConfig{}
			}),
		},
	}
}

// toNewPods is an operator that gives new pods, which were not rolled back, something else than the newest.
func toNewPods(change func(core.Observed, revision.Config, revision.PluginConfig) (revision.Config, revision.PluginConfig)) func() Operator {
	return serving(func(o core.Observed, back int) (revision.Config, revision.PluginConfig) {
		c, p := core.Serve(o, back)
		if back > 0 {
			return c, p
		}
		return change(o, c, p)
	})
}
