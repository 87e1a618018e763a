package model_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

type event struct {
	weight int
	do     func(*world)
}

// events are all that can happen, the usual ones with more weight.
func events() []event {
	return []event{
		{30, func(w *world) { w.executor.carry() }}, {12, func(w *world) { w.executor.decide() }}, {12, func(w *world) { w.executor.rewrite() }}, {6, func(w *world) { w.executor.check() }},
		{10, func(w *world) { w.pass(time.Duration(1+w.choose(12)) * 10 * time.Second) }},
		{8, func(w *world) { w.reload(w.disturb.anyNode()) }},
		{30, func(w *world) { w.executor.install(w.disturb.anyNode()) }},
		{6, func(w *world) { w.disturb.put() }},
		{3, func(w *world) { w.disturb.calm(1 + w.choose(60)) }},
		{4, func(w *world) { w.disturb.order() }},
		{3, func(w *world) { w.disturb.flip() }},
		{2, func(w *world) { w.executor.crash() }},
		{4, func(w *world) { w.disturb.rotate() }},
		{4, func(w *world) { w.disturb.notice() }},
		{2, func(w *world) {
			w.disturb.anyPlugin(func(p *plugin) { p.alive = !p.alive || p.well && w.choose(2) == 0 })
		}},
		{1, func(w *world) { w.disturb.anyPlugin(func(p *plugin) { p.well = !p.well }) }},
		{2, func(w *world) { w.disturb.power() }},
		{1, func(w *world) {
			n := w.disturb.anyNode()
			n.reports = !n.reports
			w.note("a reporter runs: %v", n.reports)
		}},
		{5, func(w *world) { w.disturb.rollBack() }},
		{1, func(w *world) { w.disturb.members() }},
		{2, func(w *world) { w.disturb.replace() }},
		{4, func(w *world) { w.disturb.arrivals() }},
	}
}

// disturbances are what happens to a cluster, beside what its operator does.
type disturbances struct{ w *world }

func (d *disturbances) anyNode() *node { return d.w.nodes[d.w.pick(d.w.names())] }

func (d *disturbances) anyPlugin(do func(*plugin)) {
	n := d.anyNode()
	var ids []uint64
	for id := range n.plugins {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	do(n.plugins[ids[d.w.choose(len(ids))]])
}

// put is a client that writes an object, a new one or one that is there.
func (d *disturbances) put() {
	name := d.w.pick(d.w.serving())
	if name == "" {
		return
	}
	object := fmt.Sprintf("o%d", d.w.choose(4))
	d.w.write(object, d.w.nodes[name])
	d.w.note("%s is written through %s, under key %d %s", object, name, d.w.objects[object].key, d.w.objects[object].kek)
}

// order is an administrator who changes his mind.
func (d *disturbances) order() {
	all := specs()
	d.w.spec = all[d.w.choose(len(all))]
	d.w.note("wanted: %s %s %s", d.w.spec.Type, d.w.spec.Hash(), d.w.spec.Invalid)
}

// rotate makes a new version of a key in the remote KMS, which one node's plugins see.
func (d *disturbances) rotate() {
	p := vault([]string{"a", "b"}[d.w.choose(2)], "image")
	if top := revision.NewestKey(d.w.allKeys()); top.Type == config.KMS && d.w.choose(4) > 0 {
		p = top.Plugin // the one that matters
	}
	d.w.remote[keyHash(p)]++
	d.w.note("the KMS rotates %s", keyHash(p))
	d.notice()
	if d.w.choose(4) == 0 { // the others do not notice for long
		d.calm(50)
	}
}

// notice is a plugin that sees the newest version of its key.
func (d *disturbances) notice() {
	name := d.w.pick(d.w.names())
	for _, id := range slices.Sorted(maps.Keys(d.w.nodes[name].plugins)) {
		if p := d.w.nodes[name].plugins[id]; !p.back || d.noted(name, id) {
			p.sees, p.back = d.w.remote[keyHash(p.config)], false
		}
	}
}

// calm is a time in which nothing happens but what the operator does.
func (d *disturbances) calm(rounds int) {
	patient := d.w.choose(2) == 0
	for range rounds {
		if busy := d.w.round(); d.w.found != nil || !busy && !patient {
			return
		}
		d.w.laws.judge()
	}
}

// flip is a plugin that answers from a place that has not seen the newest version.
func (d *disturbances) flip() {
	name := d.w.pick(d.w.names())
	n, top := d.w.nodes[name], revision.NewestKey(d.w.allKeys())
	if p := n.plugins[top.ID]; p != nil && p.sees > 0 && d.noted(name, top.ID) {
		p.sees, p.back = p.sees-1, true
		d.w.note("the plugin on %s goes back to version %d", name, p.sees)
	}
}

// noted says whether the operator has seen what a plugin reports now, and done what it wanted to do about it. What comes and goes in
// between nobody can notice, and KMS v2 forbids it.
func (d *disturbances) noted(name string, id uint64) bool {
	p := d.w.nodes[name].plugins[id]
	if d.w.snapshot == nil || len(d.w.plan) > 0 {
		return false
	}
	e, there := d.w.snapshot.Nodes[name].Report[id]
	own := !e.Checked.Before(d.w.nodes[name].since) // and not its predecessor's
	return there && own && e.KEK == d.w.kek(p.config, p.sees)
}

// power takes an API server down or starts it.
func (d *disturbances) power() {
	name := d.w.pick(d.w.names())
	n := d.w.nodes[name]
	if n.up {
		n.up, n.unavailable = false, d.w.choose(2) == 0
		d.w.note("%s goes down, with its whole node: %v", name, n.unavailable)
		return
	}
	d.w.arrive(name)
}

// rollBack starts the pod of an older revision of the API server.
func (d *disturbances) rollBack() {
	name := d.w.pick(d.w.names())
	back := 1 + d.w.choose(2)
	d.w.note("the API server on %s is rolled back by %d", name, back)
	d.w.pod(name, back)
}

// members adds or removes a node.
func (d *disturbances) members() {
	if len(d.w.nodes) < 3 {
		d.w.join()
		return
	}
	d.leave(d.w.pick(d.w.names()))
}

// leave removes a node.
func (d *disturbances) leave(name string) {
	delete(d.w.nodes, name)
	d.w.note("%s is removed", name)
}

// arrivals takes a node that comes one step further, if there is one.
func (d *disturbances) arrivals() {
	coming := slices.DeleteFunc(d.w.names(), func(name string) bool { return !d.w.nodes[name].unavailable || d.w.nodes[name].loaded > 0 })
	if name := d.w.pick(coming); name != "" {
		d.w.arrive(name)
	}
}

// replace puts a node in the place of one, which takes over its name, and what is left of its report.
func (d *disturbances) replace() {
	name := d.w.pick(d.w.names())
	if len(d.w.nodes) < 2 {
		return
	}
	left := d.w.nodes[name].report
	d.leave(name)
	d.w.joinAs(name, left)
}
