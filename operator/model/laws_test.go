package model_test

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// laws judge what must never be, and what must be when all has come to rest.
type laws struct{ w *world }

// judge holds the world against what must be true at every moment.
func (l *laws) judge() {
	c, p := revision.Newest(sorted(l.w.configs)), revision.Newest(sorted(l.w.plugins))
	for _, name := range slices.Sorted(maps.Keys(l.w.objects)) {
		o := l.w.objects[name]
		for _, node := range l.w.names() {
			l.judgeNode(name, o, node)
		}
		l.judgeNewest(name, o, c, p)
	}
	for _, name := range l.w.names() {
		n := l.w.nodes[name]
		for _, id := range n.reporter {
			if n.plugins[id] == nil {
				l.w.violate("TEARDOWN", "%s: the reporter has the socket of plugin %d, which was taken away", name, id)
			}
		}
		l.judgeSockets(name, n)
	}
}

// judgeSockets: the second plugin at a socket takes it from the first, and an API server that asks the one is answered by the other.
func (l *laws) judgeSockets(name string, n *node) {
	if len(n.plugins) < 2 {
		return
	}
	at := map[string]uint64{}
	for _, id := range slices.Sorted(maps.Keys(n.plugins)) {
		socket := l.w.subject.socketName(id)
		if other, taken := at[socket]; taken {
			l.w.violate("SOCKETS", "%s: plugins %d and %d are both at kms-%s.sock", name, other, id, socket)
		}
		at[socket] = id
	}
}

func (l *laws) judgeNode(name string, o object, node string) {
	n := l.w.nodes[node]
	if n.coming { // there is nothing on its disk yet
		return
	}
	c := l.w.config(n.disk)
	if n.up {
		c = l.w.config(n.loaded)
	}
	if !c.Reads(o.key) {
		l.w.violate("READABLE", "%s, which has keys %v, cannot read %s, which is under key %d", node, c.Keys, name, o.key)
	}
	if l.w.isKMS(o.key) && n.plugins[o.key] == nil {
		l.w.violate("READABLE", "%s has no plugin for %s, which is under key %d", node, name, o.key)
	}
}

func (l *laws) judgeNewest(name string, o object, c revision.Config, p revision.PluginConfig) {
	_, exists := l.w.keys[o.key]
	switch {
	case o.key == revision.Plain:
	case !c.Reads(o.key):
		l.w.violate("NEWEST-READS", "revision %d, keys %v, cannot read %s, which is under key %d", c.Revision, c.Keys, name, o.key)
	case !exists:
		l.w.violate("NEWEST-READS", "key %d is gone, and %s is under it", o.key, name)
	case l.w.isKMS(o.key) && !p.Has(o.key):
		l.w.violate("NEWEST-READS", "plugin configuration %d has no plugin for %s, which is under key %d", p.Revision, name, o.key)
	}
}

// judgeKey looks at a key that is being made.
func (l *laws) judgeKey(k revision.Key) {
	if l.w.used[k.ID] {
		l.w.violate("KEY-ID-ONCE", "keyID %d is given away for the second time", k.ID)
	}
	if l.w.snapshot.Wanted.Invalid != "" || l.w.snapshot.Wanted.Wanted != k.Wanted() {
		l.w.violate("AS-WANTED", "key %d is made for %v with %s, and that is not what is asked for", k.ID, k.Type, hash(k.Plugin))
	}
	if k.Type == config.KMS && !l.w.passed[hash(k.Plugin)] {
		l.w.violate("PREFLIGHT", "key %d is made for configuration %s, which has not passed the check", k.ID, hash(k.Plugin))
	}
	before := revision.NewestKey(l.w.snapshot.Keys)
	for _, name := range slices.Sorted(maps.Keys(l.w.objects)) {
		if o := l.w.objects[name]; o.key != keyOf(before) {
			l.w.violate("ONE-AT-A-TIME", "key %d is made while %s is still under key %d", k.ID, name, o.key)
		}
	}
	if before.Type == config.KMS {
		l.judgeHealth(k.ID, before.ID)
	}
}

// judgeHealth looks at the reports that the operator had when it decided.
func (l *laws) judgeHealth(made, before uint64) {
	for _, name := range slices.Sorted(maps.Keys(l.w.snapshot.Nodes)) {
		e := l.w.snapshot.Nodes[name].Report[before]
		fresh := contract.FreshnessAt(l.w.looked, e.Checked, options().Interval) == contract.Fresh && !e.Checked.Before(l.w.snapshot.Nodes[name].Since)
		if !fresh || !e.Healthy {
			l.w.violate("ONE-AT-A-TIME", "key %d is made while %s does not freshly report a healthy plugin %d", made, name, before)
		}
	}
}

// keyOf is the key under which objects stand that were written with it: clear text has none.
func keyOf(k revision.Key) uint64 {
	if k.Type == config.Identity {
		return revision.Plain
	}
	return k.ID
}
