package sim

import (
	"slices"
	"time"
)

// parked is what an aggregator would try again every so often.
type parked struct {
	every time.Duration
	try   func()
}

// retry tries something again after a while. As long as nobody can be connected a try changes nothing, so it waits for a change instead,
// and comes as late after that as it happens to be in its turn.
func (a *aggregator) retry(every time.Duration, try func()) {
	if a.isConnected() || !a.w.hopeless() {
		a.after(every, try)
		return
	}
	a.parked = append(a.parked, parked{every, a.bind(try)})
}

// unpark is called before anything changes that a way depends on.
func (a *aggregator) unpark() {
	all := a.parked
	a.parked = nil
	for _, p := range all {
		a.w.k.After(a.w.k.Between(0, p.every), p.try)
	}
}

// hopeless says whether nobody can be connected through the load balancer, and learns that at once.
func (w *world) hopeless() bool {
	if w.refuses(w.front) {
		return true
	}
	return !w.front.silent() && !w.balancer.paused && !slices.ContainsFunc(w.main.nodes, func(n *node) bool {
		return !n.isolated && (n.balanced.silent() || n.server.accepts())
	})
}
