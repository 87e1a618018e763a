package sim

import (
	"errors"

	"github.com/kmsharness/kmsharness/harness/history"
)

// resolver is what a reporter that knows the load balancer by a name asks for its address, as Go's resolver does, which has no cache. It leaves
// out search domains and several servers.
type resolver struct {
	w     *world
	id    history.Link
	state string
	moves int // of the load balancer, which has another address after each
	known int // the moves that answers know of
}

// queryAttempts share the deadline of a write. With the contract's interval this is what resolv.conf has by default: two of 5 s.
const queryAttempts = 2

// Errors of a query, in the words of a client.
var (
	errNoSuchHost = errors.New("lookup kubernetes.default.svc: no such host")
	errServFail   = errors.New("lookup kubernetes.default.svc: server misbehaving")
	errNoAnswer   = errors.New("lookup kubernetes.default.svc: i/o timeout")
)

// newResolver is nil where reporters know the load balancer by its address.
func newResolver(w *world, node string) *resolver {
	if !w.dns {
		return nil
	}
	return &resolver{w: w, id: history.Link{From: history.RoleReporter, To: history.DNS, Node: node}, state: history.LinkOK}
}

// become puts a fault in force, or ends it. An answer becomes stale when the load balancer moves, which ends the connections to its old address.
func (r *resolver) become(state string, through *link) {
	change := r.id
	change.State = state
	r.w.record("backend", &change)
	if state == history.LinkStale && r.state != history.LinkStale {
		r.moves++
		through.hangUp()
	}
	if r.state = state; state != history.LinkStale {
		r.known = r.moves
	}
}

// lookup asks for the address. A query is not repeated by the network.
func (r *resolver) lookup(done func(address int, err error)) { r.query(queryAttempts, done) }

func (r *resolver) query(attempts int, done func(address int, err error)) {
	latency := r.w.k.Between(leastLatency, mostLatency)
	switch r.state {
	case history.LinkCut:
		r.w.k.After(r.w.timing.WriteTimeout/queryAttempts, func() {
			if attempts > 1 {
				r.query(attempts-1, done)
				return
			}
			done(0, errNoAnswer)
		})
	case history.LinkServFail:
		r.w.k.After(latency, func() { done(0, errServFail) })
	case history.LinkNXDomain:
		r.w.k.After(latency, func() { done(0, errNoSuchHost) })
	default:
		address := r.known
		r.w.k.After(latency, func() { done(address, nil) })
	}
}
