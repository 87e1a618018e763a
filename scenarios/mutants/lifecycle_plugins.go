package mutants

import (
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
						if !plugins.Has(id) {
							stop.Plugins = append(stop.Plugins, id)
						}
					}
					return []core.Action{stop, r}
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
			Name: "sockets-by-the-key-alone", Caught: []string{"SOCKETS"},
			Mistake: "sockets named by a hash of what chooses the key, without the image: the newer plugin takes the socket of the one that it is to replace",
			Wrong: func() model.Subject {
				s := model.ByHash()
				s.Name = func(p revision.Plugin) string { return config.Wanted{Type: config.KMS, KMS: p.Config}.KeyHash() }
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
				for _, name := range nodesOf(o) {
					for id := range o.Nodes[name].Plugins {
						p.Actions = append(p.Actions, core.Report{Node: name}, core.StopPlugins{Node: name, Plugins: []uint64{id}})
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
