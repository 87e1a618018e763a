package model

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/lifecycle/config"
	"github.com/kmsharness/kmsharness/harness/lifecycle/revision"
)

// judge holds the world against what must be true at every moment.
func (w *world) judge() {
	c, p := revision.Newest(sorted(w.configs)), revision.Newest(sorted(w.plugins))
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		o := w.objects[name]
		for _, node := range w.names() {
			w.judgeNode(name, o, node)
		}
		w.judgeNewest(name, o, c, p)
	}
	for _, name := range w.names() {
		n := w.nodes[name]
		for _, id := range n.reporter {
			if n.plugins[id] == nil {
				w.violate("TEARDOWN", "%s: the reporter has the socket of plugin %d, which was taken away", name, id)
			}
		}
		w.judgeSockets(name, n)
	}
}

// judgeSockets: the second plugin at a socket takes it from the first, and an API server that asks the one is answered by the other.
func (w *world) judgeSockets(name string, n *node) {
	if len(n.plugins) < 2 {
		return
	}
	at := map[string]uint64{}
	for _, id := range slices.Sorted(maps.Keys(n.plugins)) {
		socket := w.subject.Name(revision.Plugin{KeyID: id, Config: n.plugins[id].config})
		if other, taken := at[socket]; taken {
			w.violate("SOCKETS", "%s: plugins %d and %d are both at kms-%s.sock", name, other, id, socket)
		}
		at[socket] = id
	}
}

func (w *world) judgeNode(name string, o object, node string) {
	n := w.nodes[node]
	if n.coming { // there is nothing on its disk yet
		return
	}
	c := w.config(n.disk)
	if n.up {
		c = w.config(n.loaded)
	}
	if !c.Reads(o.key) {
		w.violate("READABLE", "%s, which has keys %v, cannot read %s, which is under key %d", node, c.Keys, name, o.key)
	}
	if w.isKMS(o.key) && n.plugins[o.key] == nil {
		w.violate("READABLE", "%s has no plugin for %s, which is under key %d", node, name, o.key)
	}
}

func (w *world) judgeNewest(name string, o object, c revision.Config, p revision.PluginConfig) {
	_, exists := w.keys[o.key]
	switch {
	case o.key == revision.Plain:
	case !c.Reads(o.key):
		w.violate("NEWEST-READS", "revision %d, keys %v, cannot read %s, which is under key %d", c.Revision, c.Keys, name, o.key)
	case !exists:
		w.violate("NEWEST-READS", "key %d is gone, and %s is under it", o.key, name)
	case w.isKMS(o.key) && !p.Has(o.key):
		w.violate("NEWEST-READS", "plugin configuration %d has no plugin for %s, which is under key %d", p.Revision, name, o.key)
	}
}

// judgeKey looks at a key that is being made.
func (w *world) judgeKey(k revision.Key) {
	if w.used[k.ID] {
		w.violate("KEY-ID-ONCE", "keyID %d is given away for the second time", k.ID)
	}
	if w.look.Wanted.Invalid != "" || w.look.Wanted.Wanted != k.Wanted() {
		w.violate("AS-WANTED", "key %d is made for %v with %s, and that is not what is asked for", k.ID, k.Type, hash(k.Plugin))
	}
	if k.Type == config.KMS && !w.passed[hash(k.Plugin)] {
		w.violate("PREFLIGHT", "key %d is made for configuration %s, which has not passed the check", k.ID, hash(k.Plugin))
	}
	before := revision.NewestKey(w.look.Keys)
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		if o := w.objects[name]; o.key != stands(before) {
			w.violate("ONE-AT-A-TIME", "key %d is made while %s is still under key %d", k.ID, name, o.key)
		}
	}
	if before.Type == config.KMS {
		w.judgeHealth(k.ID, before.ID)
	}
}

// judgeHealth looks at the reports that the operator had when it decided.
func (w *world) judgeHealth(made, before uint64) {
	for _, name := range slices.Sorted(maps.Keys(w.look.Nodes)) {
		e := w.look.Nodes[name].Report[before]
		fresh := contract.FreshnessAt(w.looked, e.Checked, Options().Interval) == contract.Fresh && !e.Checked.Before(w.look.Nodes[name].Since)
		if !fresh || !e.Healthy {
			w.violate("ONE-AT-A-TIME", "key %d is made while %s does not freshly report a healthy plugin %d", made, name, before)
		}
	}
}

// stands is the key under which objects stand that were written with it: clear text has none.
func stands(k revision.Key) uint64 {
	if k.Type == config.Identity {
		return revision.Plain
	}
	return k.ID
}
