package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/lifecycle/config"
	"github.com/kmsharness/kmsharness/harness/lifecycle/revision"
)

// event is something that happens.
type event struct {
	weight int
	do     func(*world)
}

// events are all that can happen, the usual ones with more weight.
func events() []event {
	return []event{
		{30, (*world).carry}, {12, (*world).decide}, {12, (*world).rewrite}, {6, (*world).check},
		{10, func(w *world) { w.pass(time.Duration(1+w.choose(12)) * 10 * time.Second) }},
		{8, func(w *world) { w.reload(w.anyNode()) }},
		{6, (*world).put},
		{3, func(w *world) { w.calm(1 + w.choose(60)) }},
		{4, (*world).order},
		{3, (*world).flip},
		{2, (*world).crash},
		{4, (*world).rotate},
		{4, (*world).notice},
		{2, func(w *world) { w.anyPlugin(func(p *plugin) { p.alive = !p.alive || p.well && w.choose(2) == 0 }) }},
		{1, func(w *world) { w.anyPlugin(func(p *plugin) { p.well = !p.well }) }},
		{2, (*world).power},
		{1, func(w *world) { n := w.anyNode(); n.reports = !n.reports; w.note("a reporter runs: %v", n.reports) }},
		{5, (*world).rollBack},
		{1, (*world).members},
		{2, (*world).replace},
		{4, (*world).arrivals},
	}
}

func (w *world) anyNode() *node { return w.nodes[w.pick(w.names())] }

func (w *world) anyPlugin(do func(*plugin)) {
	n := w.anyNode()
	var ids []uint64
	for id := range n.plugins {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	do(n.plugins[ids[w.choose(len(ids))]])
}

// put is a client that writes an object, a new one or one that is there.
func (w *world) put() {
	name := w.pick(w.serving())
	if name == "" {
		return
	}
	object := fmt.Sprintf("o%d", w.choose(4))
	w.write(object, w.nodes[name])
	w.note("%s is written through %s, under key %d %s", object, name, w.objects[object].key, w.objects[object].kek)
}

// order is an administrator who changes his mind.
func (w *world) order() {
	all := specs()
	w.spec = all[w.choose(len(all))]
	w.note("wanted: %s %s %s", w.spec.Type, w.spec.Hash(), w.spec.Invalid)
}

// rotate makes a new version of a key in the remote KMS, which one node's plugins see.
func (w *world) rotate() {
	p := vault([]string{"a", "b"}[w.choose(2)], "image")
	if top := revision.NewestKey(w.allKeys()); top.Type == config.KMS && w.choose(4) > 0 {
		p = top.Plugin // the one that matters
	}
	w.remote[keyHash(p)]++
	w.note("the KMS rotates %s", keyHash(p))
	w.notice()
	if w.choose(4) == 0 { // the others do not notice for long
		w.calm(50)
	}
}

// notice is a plugin that sees the newest version of its key.
func (w *world) notice() {
	name := w.pick(w.names())
	for _, id := range slices.Sorted(maps.Keys(w.nodes[name].plugins)) {
		if p := w.nodes[name].plugins[id]; !p.back || w.noted(name, id) {
			p.sees, p.back = w.remote[keyHash(p.config)], false
		}
	}
}

// calm is a time in which nothing happens but what the operator does.
func (w *world) calm(rounds int) {
	patient := w.choose(2) == 0
	for range rounds {
		if busy := w.round(); w.found != nil || !busy && !patient {
			return
		}
		w.judge()
	}
}

// flip is a plugin that answers from a place that has not seen the newest version.
func (w *world) flip() {
	name := w.pick(w.names())
	n, top := w.nodes[name], revision.NewestKey(w.allKeys())
	if p := n.plugins[top.ID]; p != nil && p.sees > 0 && w.noted(name, top.ID) {
		p.sees, p.back = p.sees-1, true
		w.note("the plugin on %s goes back to version %d", name, p.sees)
	}
}

// noted says whether the operator has seen what a plugin reports now, and done what it wanted to do about it. What comes and goes in
// between nobody can notice, and KMS v2 forbids it.
func (w *world) noted(name string, id uint64) bool {
	p := w.nodes[name].plugins[id]
	if w.look == nil || len(w.plan) > 0 {
		return false
	}
	e, there := w.look.Nodes[name].Report[id]
	return there && e.KEK == w.kek(p.config, p.sees)
}

// power takes an API server down or starts it.
func (w *world) power() {
	name := w.pick(w.names())
	n := w.nodes[name]
	if n.up {
		n.up, n.away = false, w.choose(2) == 0
		w.note("%s goes down, with its whole node: %v", name, n.away)
		return
	}
	w.arrive(name)
}

// rollBack starts the pod of an older revision of the API server.
func (w *world) rollBack() {
	name := w.pick(w.names())
	back := 1 + w.choose(2)
	w.note("the API server on %s is rolled back by %d", name, back)
	w.pod(name, back)
}

// members adds or removes a node.
func (w *world) members() {
	if len(w.nodes) < 3 {
		w.join()
		return
	}
	w.leave(w.pick(w.names()))
}

// leave removes a node.
func (w *world) leave(name string) {
	delete(w.nodes, name)
	w.note("%s is removed", name)
}

// arrivals takes a node that comes one step further, if there is one.
func (w *world) arrivals() {
	coming := slices.DeleteFunc(w.names(), func(name string) bool { return !w.nodes[name].away || w.nodes[name].loaded > 0 })
	if name := w.pick(coming); name != "" {
		w.arrive(name)
	}
}

// replace puts a node in the place of one, which takes over its name, and what is left of its report.
func (w *world) replace() {
	name := w.pick(w.names())
	if len(w.nodes) < 2 {
		return
	}
	left := w.nodes[name].report
	w.leave(name)
	w.joinAs(name, left)
}
