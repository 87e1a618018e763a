package model_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// executor decides as the operator does, and carries out its plan.
type executor struct{ w *world }

// decide has the operator look and plan.
func (x *executor) decide() {
	o := x.w.observe()
	x.w.snapshot, x.w.looked, x.w.versions, x.w.met = &o, x.w.now, map[uint64]int{}, maps.Clone(x.w.nodes)
	for id, k := range x.w.keys {
		x.w.versions[id] = k.version
	}
	x.w.plan = x.w.subject.Decide(x.w.observe(), options(), x.w.now).Actions
}

// crash ends the operator: what it planned is forgotten, and so is the migration that it carried out.
func (x *executor) crash() {
	x.w.plan, x.w.snapshot = nil, nil
	x.w.migration, x.w.pending = core.Migration{}, nil
	x.w.preflight = nil
	x.w.note("the operator crashes")
}

// carry carries out the next action of the plan, as the cluster is by now.
func (x *executor) carry() {
	if len(x.w.plan) == 0 {
		return
	}
	a := x.w.plan[0]
	x.w.plan = x.w.plan[1:]
	x.w.note("%T %+v", a, a)
	x.w.did[fmt.Sprintf("%T", a)]++
	if conflict := x.submit(a); conflict {
		x.w.note("conflict: the operator looks again")
		x.w.plan = nil
		return
	}
	x.act(a)
}

// submit carries out what goes to the API server, and says whether it refused.
func (x *executor) submit(a core.Action) (conflict bool) {
	switch a := a.(type) {
	case core.CreateKey:
		if _, there := x.w.keys[a.Key.ID]; there {
			return true
		}
		x.w.laws.judgeKey(a.Key)
		x.w.keys[a.Key.ID], x.w.used[a.Key.ID], x.w.result = &stored[revision.Key]{value: a.Key}, true, core.Preflight{}
	case core.UpdateKey:
		k, there := x.w.keys[a.Key.ID]
		if !there || k.version != x.w.versions[a.Key.ID] {
			return true
		}
		k.value, k.version = a.Key, k.version+1
		x.w.versions[a.Key.ID] = k.version
	case core.CreateConfig:
		if _, there := x.w.configs[a.Config.Revision]; there {
			return true
		}
		x.w.configs[a.Config.Revision] = a.Config
	case core.CreatePluginConfig:
		if _, there := x.w.plugins[a.Config.Revision]; there {
			return true
		}
		x.w.plugins[a.Config.Revision] = a.Config
	case core.Prune:
		x.prune(a)
	}
	return false
}

func (x *executor) prune(a core.Prune) {
	for _, id := range a.Keys {
		delete(x.w.keys, id)
	}
	for _, r := range a.Configs {
		delete(x.w.configs, r)
	}
	for _, r := range a.PluginConfigs {
		delete(x.w.plugins, r)
	}
}

// act carries out what happens outside of the API server.
func (x *executor) act(a core.Action) {
	switch a := a.(type) {
	case core.StartPlugins:
		x.on(a.Node, func(n *node) {
			for _, p := range a.Plugins {
				x.w.install(n, p)
			}
		})
	case core.StopPlugins:
		x.on(a.Node, func(n *node) {
			for _, id := range a.Plugins {
				delete(n.plugins, id)
			}
		})
	case core.Report:
		x.on(a.Node, func(n *node) { n.reporter = slices.Clone(a.Plugins) })
	case core.RollOut:
		x.on(a.Node, func(n *node) {
			if _, there := x.w.configs[a.Revision]; there {
				n.disk = a.Revision
			}
		})
	case core.RunPreflight:
		x.w.preflight = &a.Plugin
	case core.Migrate:
		if x.w.migration.Attempt != a.Attempt || len(x.w.pending) == 0 && !x.w.migration.Done {
			x.begin(a.Attempt)
		}
	}
}

// on does something on a node. What was planned for another one that had its name is given up, and with it the rest of the plan.
func (x *executor) on(name string, do func(*node)) {
	n := x.w.nodes[name]
	switch {
	case n != x.w.met[name]:
		x.w.note("%s is another node: the operator looks again", name)
		x.w.plan = nil
	case n != nil && !n.unavailable:
		do(n)
	}
}
