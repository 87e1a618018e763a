package mutants

import (
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/model"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// lifecyclePlugins start and stop plugins at a wrong time.
func lifecyclePlugins() []Mutant {
	return []Mutant{
		{
			Name: "teardown-order-reversed", Caught: []string{"TEARDOWN"},
			Mistake: "plugins ended before the reporters that ask them: each switch ends with alarms about plugins that nobody needs",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				plugins := revision.Newest(o.PluginConfigs)
				replace(p, func(r core.Report) []core.Action {
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
			Name: "one-plugin-per-pod", Caught: []string{"READABLE"},
			Mistake: "a pod has one plugin, that of the newest key: while data moves from one KMS to the other nobody can read the old one's",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				top, _ := newest(o)
				for _, name := range nodesOf(o) {
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
			Name: "one-socket-for-all", Caught: []string{"SOCKETS"},
			Mistake: "one socket for the plugin of a node, whatever its key: that of the next key takes the socket of the one that is still needed to read",
			Wrong: func() model.Subject {
				s := model.Good()
				s.SocketName = func(uint64) string { return "plugin" }
				return s
			},
		},
		{
			Name: "plugins-end-with-the-type", Caught: []string{"READABLE"},
			Mistake: "KMS is no longer asked for, so its plugins are taken away: before the data has been decrypted",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				if o.Wanted.Invalid != "" || o.Wanted.Type == config.KMS {
					return
				}
				drop[core.StartPlugins](p)
				drop[core.Report](p)
				for _, name := range nodesOf(o) {
					if ids := slices.Sorted(maps.Keys(o.Nodes[name].Plugins)); len(ids) > 0 {
						p.Actions = append(p.Actions, core.Report{Node: name}, core.StopPlugins{Node: name, Plugins: ids})
					}
				}
			}),
		},
		{
			Name: "plugins-never-end", Caught: []string{"NOTHING-LEFT"},
			Mistake: "plugins are started and never stopped: each KMS that was ever used still has its credentials on every node",
			Wrong:   planning(func(_ core.Observed, p *core.Plan, _ time.Time) { drop[core.StopPlugins](p) }),
		},
		{
			Name: "missing-credentials-block", Caught: []string{"CONVERGES"},
			Mistake: "an error when credentials are not there yet: nothing else is done meanwhile, for anybody",
			Wrong: planning(func(o core.Observed, p *core.Plan, _ time.Time) {
				if len(o.Wanted.Missing) > 0 {
					p.Actions = nil
				}
			}),
		},
	}
}
