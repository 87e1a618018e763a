package decisions

import (
	"maps"
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
			Name: "teardown-order-reversed", Law: "TEARDOWN", Scenario: "operator-kms-to-kms", Caught: []string{"SWITCH-ORDER"},
			Mistake: "plugins ended before the reporters that ask them: each switch ends with alarms about plugins that nobody needs",
			Operator: Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				plugins := revision.Newest(o.PluginConfigs)
				Replace(p, func(r core.Report) []core.Action {
					stop := core.StopPlugins{Node: r.Node}
					for _, id := range o.Nodes[r.Node].Reporter {
						if _, runs := o.Nodes[r.Node].Plugins[id]; runs && !plugins.Has(id) {
							stop.Plugins = append(stop.Plugins, id)
						}
					}
					if len(stop.Plugins) > 0 {
						return []core.Action{stop}
					}
					return []core.Action{r}
				})
			}),
		},
		{
			Name: "one-plugin-per-pod", Law: "READABLE", Scenario: "operator-kms-to-kms", Caught: []string{"SWITCH-ORDER"},
			Mistake: "a pod has one plugin, that of the newest key: while data moves from one KMS to the other nobody can read the old one's",
			Operator: Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, _ := Newest(o)
				for _, name := range slices.Sorted(maps.Keys(o.Nodes)) {
					_, runs := o.Nodes[name].Plugins[top.ID]
					for id := range o.Nodes[name].Plugins {
						if id != top.ID && runs {
							p.Actions = append(p.Actions, core.Report{Node: name, Plugins: []uint64{top.ID}}, core.StopPlugins{Node: name, Plugins: []uint64{id}})
						}
					}
				}
			}),
		},
		{
			Name: "plugins-end-with-the-type", Law: "READABLE", Scenario: "operator-downgrade-after-migrating-away", Caught: []string{"SWITCH-ORDER"},
			Mistake: "KMS is no longer asked for, so its plugins are taken away: before the data has been decrypted",
			Operator: Planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				if o.Wanted.Invalid != "" || o.Wanted.Type == config.KMS {
					return
				}
				Drop[core.StartPlugins](p)
				Drop[core.Report](p)
				for _, name := range slices.Sorted(maps.Keys(o.Nodes)) {
					if ids := slices.Sorted(maps.Keys(o.Nodes[name].Plugins)); len(ids) > 0 {
						p.Actions = append(p.Actions, core.Report{Node: name}, core.StopPlugins{Node: name, Plugins: ids})
					}
				}
			}),
		},
		{
			Name: "plugins-never-end", Law: "NOTHING-LEFT", Scenario: "operator-downgrade-after-migrating-away", Caught: []string{"steps[4].expect"},
			Mistake:  "plugins are started and never stopped: each KMS that was ever used still has its credentials on every node",
			Operator: Planning(func(_ core.Observed, p *core.Plan, _ time.Time) { Drop[core.StopPlugins](p) }),
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
