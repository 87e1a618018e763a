package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
	"github.com/kmsharness/kmsharness/harness/lifecycle/revision"
)

// decide has the operator look and plan.
func (w *world) decide() {
	o := w.observe()
	w.look, w.looked, w.versions, w.met = &o, w.now, map[uint64]int{}, maps.Clone(w.nodes)
	for id, k := range w.keys {
		w.versions[id] = k.version
	}
	w.plan = w.subject.Decide(w.observe(), Options(), w.now).Actions
}

// crash ends the operator: what it planned is forgotten, and so is the migration that it carried out.
func (w *world) crash() {
	w.plan, w.look = nil, nil
	w.migration, w.pending = core.Migration{}, nil
	w.preflight = nil
	w.note("the operator crashes")
}

// carry carries out the next action of the plan, as the cluster is by now.
func (w *world) carry() {
	if len(w.plan) == 0 {
		return
	}
	a := w.plan[0]
	w.plan = w.plan[1:]
	w.note("%T %+v", a, a)
	w.did[fmt.Sprintf("%T", a)]++
	if conflict := w.submit(a); conflict {
		w.note("conflict: the operator looks again")
		w.plan = nil
		return
	}
	w.act(a)
}

// submit carries out what goes to the API server, and says whether it refused.
func (w *world) submit(a core.Action) (conflict bool) {
	switch a := a.(type) {
	case core.CreateKey:
		if _, there := w.keys[a.Key.ID]; there {
			return true
		}
		w.judgeKey(a.Key)
		w.keys[a.Key.ID], w.used[a.Key.ID], w.result = &stored[revision.Key]{value: a.Key}, true, core.Preflight{}
	case core.UpdateKey:
		k, there := w.keys[a.Key.ID]
		if !there || k.version != w.versions[a.Key.ID] {
			return true
		}
		k.value, k.version = a.Key, k.version+1
		w.versions[a.Key.ID] = k.version
	case core.CreateConfig:
		if _, there := w.configs[a.Config.Revision]; there {
			return true
		}
		w.configs[a.Config.Revision] = a.Config
	case core.CreatePluginConfig:
		if _, there := w.plugins[a.Config.Revision]; there {
			return true
		}
		w.plugins[a.Config.Revision] = a.Config
	case core.Prune:
		w.prune(a)
	}
	return false
}

func (w *world) prune(a core.Prune) {
	for _, id := range a.Keys {
		delete(w.keys, id)
	}
	for _, r := range a.Configs {
		delete(w.configs, r)
	}
	for _, r := range a.PluginConfigs {
		delete(w.plugins, r)
	}
}

// act carries out what happens outside of the API server.
func (w *world) act(a core.Action) {
	switch a := a.(type) {
	case core.StartPlugins:
		w.on(a.Node, func(n *node) {
			for _, p := range a.Plugins {
				w.install(n, p)
			}
		})
	case core.StopPlugins:
		w.on(a.Node, func(n *node) {
			for _, id := range a.Plugins {
				delete(n.plugins, id)
			}
		})
	case core.Report:
		w.on(a.Node, func(n *node) { n.reporter = slices.Clone(a.Plugins) })
	case core.RollOut:
		w.on(a.Node, func(n *node) {
			if _, there := w.configs[a.Revision]; there {
				n.disk = a.Revision
			}
		})
	case core.RunPreflight:
		w.preflight = &a.Plugin
	case core.Migrate:
		if w.migration.Attempt != a.Attempt || len(w.pending) == 0 && !w.migration.Done {
			w.begin(a.Attempt)
		}
	}
}

// on does something on a node. What was planned for another one that had its name is given up, and with it the rest of the plan.
func (w *world) on(name string, do func(*node)) {
	n := w.nodes[name]
	switch {
	case n != w.met[name]:
		w.note("%s is another node: the operator looks again", name)
		w.plan = nil
	case n != nil && !n.away:
		do(n)
	}
}
