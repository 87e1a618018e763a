package sim

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kmsharness/kmsharness/harness/history"
)

// errPassed is what a kube-apiserver answers when no instance behind a Service takes a request.
var errPassed = errors.New("error trying to reach service: connect: connection refused")

// through makes a request of the harness for an encrypted object: to the kube-apiserver of a node. One for an object of a further API
// server it passes on to an instance behind the Service, whichever has its turn.
//
// What it leaves out: who the client is and what he may do, which the instance asks a kube-apiserver, and how long an endpoint is known after
// its end: one that takes no connections is passed over at once.
func (n *node) through(do func(s *server, done func(error)), done func(error)) {
	if n.host == nil {
		do(n.server, done)
		return
	}
	kube := n.kube()
	switch {
	case !kube.runs():
		done(errRefused)
		return
	case n.host.off:
		return // what it passes on is lost, and whoever waits gives up
	}
	kube.after(kube.w.k.Between(leastServe, mostServe), func() { n.w.tryInstances(kube, n.w.instances(), do, done) })
}

// instances are those behind the Service, a different one first each time.
func (w *world) instances() []*node {
	first := w.member % len(w.nodes)
	w.member = first + 1
	return append(append([]*node(nil), w.nodes[first:]...), w.nodes[:first]...)
}

func (w *world) tryInstances(kube *server, members []*node, do func(*server, func(error)), done func(error)) {
	if len(members) == 0 {
		done(apierrors.NewServiceUnavailable(errPassed.Error()))
		return
	}
	n := members[0]
	aggregated := func() { w.tryInstances(kube, members[1:], do, done) }
	switch {
	case n.balanced.state == history.LinkCut:
		kube.after(w.timing.DialTimeout(), aggregated)
	case n.balanced.state == history.LinkReset || !n.server.accepts():
		kube.after(leastLatency, aggregated)
	default:
		incarnation := kube.incarnation
		n.balanced.sendTo(&n.server.proc, 0, func() {
			do(n.server, func(err error) { n.balanced.send(1, kube.bindTo(incarnation, func() { done(err) })) })
		})
	}
}

// awaitKube tries until a kube-apiserver takes connections: an aggregated API server asks one who its clients are. A real one ends where
// none answers, and is started again.
func (s *server) awaitKube(then func()) {
	if s.node.host == nil || s.w.answers() {
		then()
		return
	}
	s.after(storagePoll, func() { s.awaitKube(then) })
}

// answers says whether a kube-apiserver can be reached through the load balancer.
func (c *cluster) answers() bool {
	return c.balancer.runs() && slices.ContainsFunc(c.main.nodes, func(n *node) bool { return !n.isolated && n.server.runs() })
}
