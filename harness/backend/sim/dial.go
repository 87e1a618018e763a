package sim

import (
	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// dialNode connects to the API server of a node, past the load balancer. A way on which nothing gets through is accepted by
// nobody: done is never called.
func (w *world) dialNode(l *link, s *server, done func(*conn, error)) {
	switch l.state {
	case history.LinkReset:
		w.k.After(leastLatency, func() { done(nil, errReset) })
		return
	case history.LinkMute:
		w.k.After(leastLatency, func() { done(w.connect(&conn{links: []*link{l}, unheard: true}), nil) })
		return
	}
	l.reach(func() {
		l.sendIn(nil, 0, 0, handshakeSize, func() {
			if !s.accepts() {
				l.send(1, func() { done(nil, errRefused) })
				return
			}
			c := w.connect(&conn{links: []*link{l}, server: s})
			l.sendIn(nil, 0, 1, handshakeSize, func() { shake(c.links, func() { done(c, nil) }) })
		})
	})
}

// dialBalanced connects to some API server through the load balancer, which tries its members in turn.
func (b *balancer) dialBalanced(front *link, done func(*conn, error)) {
	if b.refuses(front) {
		b.w.k.After(leastLatency, func() { done(nil, errRefused) })
		return
	}
	over := false
	var late *kernel.Timer
	once := func(c *conn, err error) {
		switch {
		case !over:
			over = true
			late.Stop()
			done(c, err)
		case c != nil:
			c.fail(errReset) // too late: nobody wants it any more
		}
	}
	late = b.w.k.After(reconcile.FirstByteTimeout, func() { once(nil, errTimeout) })
	if front.state == history.LinkMute {
		return
	}
	front.reach(func() {
		front.sendIn(&b.proc, b.incarnation, 0, handshakeSize, func() { b.tryMembers(front, b.turn(), once) })
	})
}

// refuses says whether nobody can be connected through the load balancer, and learns it at once.
func (b *balancer) refuses(front *link) bool {
	return front.state == history.LinkReset || !b.running()
}

// turn is the members of the load balancer, a different one first each time.
func (b *balancer) turn() []*node {
	members := b.members()
	if len(members) == 0 {
		return nil
	}
	first := b.next % len(members)
	b.next = first + 1
	return append(append([]*node(nil), members[first:]...), members[:first]...)
}

// members are the nodes whose API servers the load balancer knows.
func (b *balancer) members() []*node {
	if b.stale != nil {
		return b.stale
	}
	var members []*node
	for _, n := range b.w.main.nodes {
		if !n.isolated {
			members = append(members, n)
		}
	}
	return members
}

func (b *balancer) tryMembers(front *link, members []*node, done func(*conn, error)) {
	if len(members) == 0 {
		front.send(1, func() { done(nil, errReset) })
		return
	}
	n := members[0]
	aggregated := func() { b.tryMembers(front, members[1:], done) }
	established := func(c *conn) {
		c.links, c.through = []*link{front, n.balanced}, &b.proc
		b.w.connect(c)
		front.sendIn(nil, 0, 1, handshakeSize, func() { shake(c.links, func() { done(c, nil) }) })
	}
	switch {
	case n.balanced.state == history.LinkCut || n.isolated: // a machine that is gone does not even refuse
		b.after(b.w.timing.DialTimeout(), aggregated)
	case n.balanced.state == history.LinkMute:
		established(&conn{unheard: true})
	case n.balanced.state == history.LinkReset || !n.server.accepts():
		b.after(leastLatency, aggregated)
	default:
		if wait := n.balanced.establishing(); wait > b.w.timing.DialTimeout() {
			b.after(b.w.timing.DialTimeout(), aggregated)
		} else if wait > 0 {
			b.after(wait, func() { established(&conn{server: n.server}) })
		} else {
			n.balanced.sendIn(nil, 0, 0, handshakeSize, func() { established(&conn{server: n.server}) })
		}
	}
}
