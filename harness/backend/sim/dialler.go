package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
)

// dialler is the one connection of a provider to its plugin's socket, in the way of gRPC: a call waits for it, a failed dial is
// tried again ever later, and goes on being tried when nobody waits any more. So a plugin that comes back after a long time is
// noticed late.
type dialler struct {
	p           *provider
	plugin      *kmsPlugin // whom it is connected to, and in which of its lives
	incarnation int
	cut         string
	failed      int    // dials, one after the other
	problem     string // of the last one
	dialing     bool
	waiting     []*waiter
}

type waiter struct {
	deadline *kernel.Timer
	then     func(g *kmsPlugin, problem string)
}

// gRPC's back-off, and how long it waits for whoever accepts a connection and says nothing.
const (
	leastBackoff, mostBackoff = time.Second, 120 * time.Second
	backoffFactor             = 1.6
	backoffJitter             = 0.2
	greetingTimeout           = 20 * time.Second
)

// connected calls then with the plugin when there is a connection to it, and with none when it takes too long.
func (d *dialler) connected(until time.Time, then func(g *kmsPlugin, problem string)) {
	if d.up() {
		then(d.plugin, "")
		return
	}
	w := &waiter{then: then}
	w.deadline = d.p.e.s.at(until, func() {
		d.waiting = slices.DeleteFunc(d.waiting, func(o *waiter) bool { return o == w })
		then(nil, d.excuse())
	})
	d.waiting = append(d.waiting, w)
	if !d.dialing {
		d.dialing = true
		d.dial()
	}
}

func (d *dialler) excuse() string {
	if d.problem == "" {
		return "context deadline exceeded while waiting for connections to become ready"
	}
	return "latest balancer error: " + d.problem
}

// up says whether the connection still is one.
func (d *dialler) up() bool {
	g := d.plugin
	return g != nil && g == d.p.e.s.node.plugin(d.p.keyID) && g.running() && g.incarnation == d.incarnation && g.cut == d.cut
}

func (d *dialler) dial() {
	if d.p.closed && len(d.waiting) == 0 {
		d.dialing = false
		return
	}
	g := d.p.e.s.node.plugin(d.p.keyID)
	switch problem, silent := g.refuses(); {
	case silent || g.paused:
		d.again(greetingTimeout)
	case problem != "":
		d.problem = problem
		d.again(0)
	default:
		d.plugin, d.incarnation, d.cut, d.failed, d.problem, d.dialing = g, g.incarnation, g.cut, 0, "", false
		waiting := d.waiting
		d.waiting = nil
		for _, w := range waiting {
			w.deadline.Stop()
			w.then(g, "")
		}
	}
}

// again dials after a while: at least as long as the dial took.
func (d *dialler) again(took time.Duration) {
	wait := float64(leastBackoff)
	for range d.failed {
		wait = min(wait*backoffFactor, float64(mostBackoff))
	}
	d.failed = min(d.failed+1, 16)
	wait *= 1 + backoffJitter*(2*d.p.e.s.w.k.Rand().Float64()-1)
	d.p.e.s.after(max(took, time.Duration(wait)), d.dial)
}
