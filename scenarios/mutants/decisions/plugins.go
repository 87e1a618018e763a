package decisions

import (
	"cmp"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// plugins start and stop plugins at a wrong time.
func plugins() []Wrong {
	return []Wrong{
		{
			Name: "one-plugin-per-pod", Law: "READABLE", Scenario: "operator-kms-to-kms", Caught: []string{"SWITCH-ORDER"},
			Mistake: "a pod has one plugin, that of the newest key: while data moves from one KMS to the other nobody can read the old one's",
			Operator: Desiring(func(o core.Observed, c *core.Content) {
				top, _ := Newest(o)
				for _, n := range o.Nodes {
					if _, runs := n.Plugins[top.ID]; runs {
						c.Plugins = slices.DeleteFunc(c.Plugins, func(p revision.Plugin) bool { return p.KeyID != top.ID })
					}
				}
			}),
		},
		{
			Name: "plugins-end-with-the-type", Law: "READABLE", Scenario: "operator-downgrade-after-migrating-away", Caught: []string{"SWITCH-ORDER"},
			Mistake: "KMS is no longer asked for, so its plugins are taken away: before the data has been decrypted",
			Operator: Desiring(func(o core.Observed, c *core.Content) {
				if o.Wanted.Invalid == "" && o.Wanted.Type != config.KMS {
					c.Plugins = nil
				}
			}),
		},
		{
			Name: "plugins-never-end", Law: "NOTHING-LEFT", Scenario: "operator-downgrade-after-migrating-away", Caught: []string{"steps[4].expect"},
			Mistake: "plugins are started and never stopped: each KMS that was ever used still has its credentials on every node",
			Operator: Desiring(func(o core.Observed, c *core.Content) {
				for _, p := range o.Desired.Plugins {
					if _, stays := c.Of(p.KeyID); !stays {
						c.Plugins = append(c.Plugins, p)
					}
				}
				slices.SortFunc(c.Plugins, func(a, b revision.Plugin) int { return cmp.Compare(b.KeyID, a.KeyID) })
			}),
		},
		{
			Name: "missing-credentials-block", Law: "CONVERGES", Scenario: "operator-credentials-missing", Caught: []string{"steps[11].expect"},
			Mistake: "an error when credentials are not there yet: nothing else is done meanwhile, for anybody",
			Operator: Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				if len(o.Wanted.Missing) > 0 {
					p.Actions = nil
				}
			}),
		},
	}
}
