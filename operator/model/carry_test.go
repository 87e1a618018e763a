package model_test

import (
	"fmt"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// executor decides as the operator does, and carries out its plan.
type executor struct{ w *world }

// decide has the operator look and plan.
func (x *executor) decide() {
	o := x.w.observe()
	x.w.snapshot, x.w.looked, x.w.versions = &o, x.w.now, map[uint64]int{}
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
		if c, there := x.w.configs[r]; there {
			x.w.pruned[r] = c
		}
		delete(x.w.configs, r)
	}
	for _, r := range a.PluginConfigs {
		delete(x.w.plugins, r)
	}
}

// act carries out what happens outside of the API server.
func (x *executor) act(a core.Action) {
	switch a := a.(type) {
	case core.Desire:
		x.w.desired = a.Content
	case core.RunPreflight:
		x.w.preflight = &a.Plugin
	case core.Migrate:
		if x.w.migration.Attempt != a.Attempt || len(x.w.pending) == 0 && !x.w.migration.Done {
			x.begin(a.Attempt)
		}
	}
}

// install brings a node's pod further towards what is desired, as an installer does: plugins, then the API server, and when that has loaded its file the
// reporter and what goes.
func (x *executor) install(n *node) (busy bool) {
	if n.unavailable {
		return false
	}
	c := x.w.desired
	for _, p := range c.Plugins {
		if has := n.plugins[p.KeyID]; has == nil || has.config != p.Config {
			x.w.start(n, p)
			busy = true
		}
	}
	if _, there := x.w.configs[c.Revision]; there && n.disk != c.Revision {
		n.disk, busy = c.Revision, true
	}
	if !n.up || n.loaded != n.disk {
		return busy
	}
	if !x.w.subject.reportersEndLast || !n.lacks(c) {
		n.reporter = nil
		for _, p := range c.Plugins {
			n.reporter = append(n.reporter, p.KeyID)
		}
	}
	for id := range n.plugins {
		if _, stays := c.Of(id); !stays {
			delete(n.plugins, id)
			busy = true
		}
	}
	return busy
}

// lacks reports whether a node has a plugin that a content has not.
func (n *node) lacks(c core.Content) bool {
	for id := range n.plugins {
		if _, stays := c.Of(id); !stays {
			return true
		}
	}
	return false
}
