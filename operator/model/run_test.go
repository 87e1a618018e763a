package model_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// run lets steps events happen, and then nothing any more. It gives the first violation, and what the operator did, counted by the type of the action.
func run(s subject, c choose, steps int) (found *violation, did map[string]int) {
	w := newWorld(s, c)
	w.run(steps)
	return w.found, w.did
}

func (w *world) run(steps int) {
	all := events()
	total := 0
	for _, e := range all {
		total += e.weight
	}
	for range steps {
		w.happen(all, w.choose(total))
		if w.laws.judge(); w.found != nil {
			return
		}
	}
	w.settle()
}

func (w *world) happen(all []event, at int) {
	for _, e := range all {
		if at < e.weight {
			e.do(w)
			return
		}
		at -= e.weight
	}
}

// seeded is a choose that a seed decides.
func seeded(seed uint64) choose { return rand.New(rand.NewPCG(seed, 0)).IntN }

// settle heals everything and waits until the operator has nothing to do.
func (w *world) settle() {
	w.heal()
	const calm = 45 // rounds: longer than anything that the operator waits for
	quiet := 0
	for round := 0; quiet < calm; round++ {
		if round > 1500 {
			w.violate("CONVERGES", "the operator does not come to rest: it still does %+v", w.plan)
			return
		}
		if quiet++; w.round() {
			quiet = 0
		}
		if w.laws.judge(); w.found != nil {
			return
		}
	}
	w.laws.judgeRest()
}

// heal ends every failure.
func (w *world) heal() {
	w.note("nothing happens any more")
	if w.spec.Invalid == "" && len(w.spec.Missing) > 0 && w.choose(2) == 0 {
		w.spec.Missing = nil
	}
	for _, name := range w.names() {
		n := w.nodes[name]
		for _, p := range n.plugins {
			p.alive, p.well = true, true
		}
		for !n.up {
			w.arrive(name)
		}
		n.reports = true
	}
	for range 3 { // what the plugins say now is reported and noted, and then they see the newest version
		w.round()
	}
	for _, name := range w.names() {
		for _, p := range w.nodes[name].plugins {
			p.sees, p.back = w.remote[keyHash(p.config)], false
		}
	}
}

// round is one look of the operator, with all that follows. It says whether there was anything to do.
func (w *world) round() (busy bool) {
	w.pass(10 * time.Second)
	w.executor.decide()
	for len(w.plan) > 0 {
		busy = busy || !idle(w.plan[0])
		w.executor.carry()
		w.laws.judge()
	}
	for _, name := range w.names() {
		n := w.nodes[name]
		installs := w.executor.install(n)
		w.laws.judge()
		busy = busy || installs || n.up && n.loaded != n.disk
		w.reload(n)
	}
	for range len(w.pending) * 4 {
		w.executor.rewrite()
	}
	w.executor.check()
	return busy
}

// idle: a check that fails is repeated for ever.
func idle(a core.Action) bool {
	p, is := a.(core.RunPreflight)
	return is && bad(p.Plugin)
}

// judgeRest holds a world at rest against what must be true then.
func (l *laws) judgeRest() {
	top := revision.NewestKey(l.w.allKeys())
	possible := l.w.spec.Invalid == "" && len(l.w.spec.Missing) == 0 && !(l.w.spec.Type == config.KMS && bad(l.w.spec.KMS))
	never := top.ID == revision.Plain && l.w.spec.Type == config.Identity
	if possible && !never && top.Wanted() != l.w.spec.Wanted {
		l.w.violate("CONVERGES", "%s %s is wanted and key %d is for %s %s", l.w.spec.Type, l.w.spec.Hash(), top.ID, top.Type, top.Wanted().Hash())
	}
	for _, name := range l.w.names() {
		l.judgeNodeAtRest(name, top)
	}
	for _, name := range slices.Sorted(maps.Keys(l.w.objects)) {
		l.judgeObjectAtRest(name, top)
	}
}

func (l *laws) judgeNodeAtRest(name string, top revision.Key) {
	n := l.w.nodes[name]
	if c := l.w.config(n.loaded); !slices.Equal(c.Keys, []uint64{top.ID}) {
		l.w.violate("CONVERGES", "%s has keys %v at rest, and the newest is %d", name, c.Keys, top.ID)
	}
	for id, p := range n.plugins {
		if id != top.ID || p.config != top.Plugin {
			l.w.violate("NOTHING-LEFT", "%s still runs plugin %d, or an old one", name, id)
		}
	}
	if len(n.plugins) != len(n.reporter) || top.Type == config.KMS && len(n.plugins) != 1 {
		l.w.violate("CONVERGES", "%s runs %d plugins at rest, and its reporter has the sockets %v", name, len(n.plugins), n.reporter)
	}
}

func (l *laws) judgeObjectAtRest(name string, top revision.Key) {
	o := l.w.objects[name]
	switch {
	case o.key != keyOf(top):
		l.w.violate("NOTHING-LEFT", "%s is still under key %d, and the newest is %d", name, o.key, top.ID)
	case top.Type == config.KMS && o.kek != l.w.kek(top.Plugin, l.w.remote[keyHash(top.Plugin)]):
		l.w.violate("NOTHING-LEFT", "%s is still under kekID %s, and the KMS has version %d", name, o.kek, l.w.remote[keyHash(top.Plugin)])
	}
}
