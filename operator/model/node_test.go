package model_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// poll is how often an API server asks its plugins at least.
const poll = time.Minute

// join adds a node with a name of its own.
func (w *world) join() {
	w.joined++
	w.joinAs(fmt.Sprintf("cp-%d", w.joined), map[uint64]core.Entry{})
}

// joinAs adds a node. It is expected from now on, and its pod comes later. Of one that had its name before a report may be left.
func (w *world) joinAs(name string, report map[uint64]core.Entry) {
	w.nodes[name] = &node{since: w.now, coming: true, unavailable: true, plugins: map[uint64]*plugin{}, report: report, reports: true}
	w.note("%s joins", name)
}

// arrive takes a node one step further: its pod is made, and gets what every pod gets; then its API server starts.
func (w *world) arrive(name string) {
	n := w.nodes[name]
	if n.coming {
		n.reports = w.choose(3) > 0 // its reporter comes last, and may come late
		w.equip(name, 0)
		w.note("%s has its pod, with revision %d", name, n.disk)
		return
	}
	w.boot(n)
	w.note("%s starts with revision %d", name, n.loaded)
}

// pod starts an API server's pod anew, rolled back by a number of revisions.
func (w *world) pod(name string, back int) {
	w.equip(name, back)
	w.boot(w.nodes[name])
}

// equip makes an API server's pod: its configuration, its plugins, its reporter.
func (w *world) equip(name string, back int) {
	n := w.nodes[name]
	c, p := w.subject.Serve(w.observe(), back)
	n.disk, n.back, n.coming = c.Revision, back, false
	for id := range n.plugins {
		if !p.Has(id) {
			delete(n.plugins, id)
		}
	}
	n.reporter = nil
	for _, one := range p.Plugins {
		w.start(n, one)
		n.reporter = append(n.reporter, one.KeyID)
	}
}

// start starts a plugin, or starts it anew.
func (w *world) start(n *node, p revision.Plugin) {
	seed := w.remote[keyHash(p.Config)]
	if old := n.plugins[p.KeyID]; old != nil && keyHash(old.config) == keyHash(p.Config) {
		seed = old.seed
	}
	made := &plugin{config: p.Config, alive: true, well: true, sees: w.remote[keyHash(p.Config)], seed: seed, polled: w.now}
	if old := n.plugins[p.KeyID]; old != nil && old.back { // it comes back where it was
		made.sees, made.back = old.sees, true
	}
	n.plugins[p.KeyID] = made
}

// boot starts an API server with what is on its disk. It asks its plugins at once.
func (w *world) boot(n *node) {
	n.up, n.unavailable, n.loaded = true, false, n.disk
	for _, id := range slices.Sorted(maps.Keys(n.plugins)) {
		w.ask(n.plugins[id])
	}
}

// reload has an API server take up the file on its disk, unless a plugin in it does not answer.
func (w *world) reload(n *node) {
	if !n.up {
		return
	}
	for _, id := range w.config(n.disk).Keys {
		if p := n.plugins[id]; w.isKMS(id) && (p == nil || !p.alive || !p.well) {
			return
		}
	}
	before := w.config(n.loaded)
	n.loaded = n.disk
	for _, id := range w.config(n.loaded).Keys {
		if w.isKMS(id) && !slices.Contains(before.Keys, id) {
			w.ask(n.plugins[id])
		}
	}
}

// ask is an API server's Status call: it encrypts under what the plugin says from then on.
func (w *world) ask(p *plugin) {
	if p.alive && p.well {
		p.seed = p.sees
	}
	p.polled = w.now
}

func (w *world) report(n *node) {
	if !n.reports || !n.up {
		return
	}
	report := map[uint64]core.Entry{}
	for _, id := range n.reporter {
		e := core.Entry{Checked: w.now, Detail: "connection refused"}
		if p := n.plugins[id]; p != nil && p.alive && p.well {
			e = core.Entry{Checked: w.now, Healthy: true, KEK: w.kek(p.config, p.sees)}
		}
		report[id] = e
	}
	n.report = report
}

// pass lets time go by. Reporters that run report, and API servers ask their plugins, as often as they do.
func (w *world) pass(d time.Duration) {
	const step = 10 * time.Second
	for ; d > 0; d -= step {
		w.now = w.now.Add(min(d, step))
		for _, name := range w.names() {
			n := w.nodes[name]
			for _, id := range slices.Sorted(maps.Keys(n.plugins)) {
				if p := n.plugins[id]; n.up && w.now.Sub(p.polled) >= poll {
					w.ask(p)
				}
			}
			w.report(n)
		}
	}
}

// write stores an object through an API server.
func (w *world) write(name string, through *node) {
	id := w.config(through.loaded).Writes()
	o := object{key: id}
	if k, there := w.keys[id]; there && k.value.Type == config.Identity {
		o.key = revision.Plain // clear text has no key
	}
	if p := through.plugins[id]; w.isKMS(id) && p != nil {
		o.kek = w.kek(p.config, p.seed)
	}
	w.objects[name] = o
}

// reads says whether an API server can read an object at this moment.
func (w *world) reads(n *node, o object) bool {
	if !w.config(n.loaded).Reads(o.key) {
		return false
	}
	p := n.plugins[o.key]
	return !w.isKMS(o.key) || p != nil && p.alive && p.well
}
