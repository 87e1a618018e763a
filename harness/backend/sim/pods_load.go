package sim

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// switchLoad writes while an operator is at something.
type switchLoad struct {
	p       *pods
	name    string
	written int
}

// switching is told by every decision whether the operator is at something, and keeps the load in step.
func (p *pods) switching(busy bool) {
	switch {
	case busy && p.load == nil && !p.e.finished:
		p.e.data.serial++
		p.load = &switchLoad{p: p, name: fmt.Sprintf("load-%d", p.e.data.serial)}
		p.e.data.busy = p.load.name
		p.load.again()
	case !busy && p.load != nil:
		p.load = nil // it notices
	}
}

// again writes after a while. In between nothing of it is under way, so that nobody waits for the end of a switch that never ends.
func (l *switchLoad) again() {
	k := l.p.e.w.k
	k.After(operated.LoadEvery, func() {
		l.p.writing++
		k.Go(func() {
			defer func() { l.p.writing-- }()
			l.write()
		})
	})
}

// write writes a new or an old object; when the switch is over, an object of each size, and looks at all that is in etcd.
func (l *switchLoad) write() {
	e := l.p.e
	if l.p.load == l {
		e.data.loadOne(l.written, l.name)
		l.written++
		l.again()
		return
	}
	if !e.finished {
		e.data.writeSizes(scenario.DataSizes())
		e.data.takeInventory()
	}
	if e.data.busy == l.name {
		e.data.busy = ""
	}
}

// askReadiness is the kubelet's readiness probe: without it an API server asks its plugins once a minute, and nowhere is it without.
func (p *pods) askReadiness() {
	p.e.w.k.After(operated.ReadinessEvery, func() {
		for _, n := range p.e.serving() {
			n.server.after(p.e.w.k.Between(leastServe, mostServe), func() { n.server.envelope.loaded.check(func(error) {}) })
		}
		p.askReadiness()
	})
}
