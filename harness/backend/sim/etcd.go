package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// etcd keeps the objects. There is one, for all API servers.
type etcd struct {
	proc
	waiting []*access // what arrived while it did not run
	working []*access // what is under way
}

// How long etcd and an API server work on a request.
const (
	leastEtcd, mostEtcd   = 300 * time.Microsecond, 1500 * time.Microsecond
	leastServe, mostServe = 500 * time.Microsecond, 2500 * time.Microsecond
)

func newEtcd(w *world) *etcd {
	e := &etcd{proc: proc{w: w, id: history.Process{Role: history.RoleEtcd}}}
	e.boot = func(ready func()) { w.k.After(w.k.Between(100*time.Millisecond, 300*time.Millisecond), ready) }
	e.up = e.serveWaiting
	e.gone = func() { e.waiting, e.working = append(e.working, e.waiting...), nil }
	return e
}

// access is a request of an API server to etcd.
type access struct {
	s     *server
	over  bool
	then  func(ok bool)
	limit *kernel.Timer
}

// access lets an API server use etcd, or says after limit that it could not be reached. What was given up is not done later.
func (e *etcd) access(s *server, limit time.Duration, then func(ok bool)) {
	a := &access{s: s, then: then}
	a.limit = s.after(limit, func() { a.end(false) })
	s.node.stored.send(0, a.asked)
}

func (a *access) end(ok bool) {
	if !a.over {
		a.over = true
		a.then(ok)
	}
}

// asked is its arrival. It is worked on as soon as etcd runs. One that is under way when etcd ends is sent again by the API server's
// client, which sees the connection break: it is not lost, and nobody waits for a time-out.
func (a *access) asked() { a.s.w.etcd.serve(a) }

func (e *etcd) serve(a *access) {
	if !e.running() || e.phase == starting {
		e.waiting = append(e.waiting, a)
		return
	}
	e.working = append(e.working, a)
	e.after(e.w.k.Between(leastEtcd, mostEtcd), func() {
		e.working = slices.DeleteFunc(e.working, func(o *access) bool { return o == a })
		a.s.node.stored.sendTo(&a.s.proc, 1, func() {
			a.limit.Stop()
			a.end(true)
		})
	})
}

// serveWaiting takes on what waited for it.
func (e *etcd) serveWaiting() {
	waiting := e.waiting
	e.waiting = nil
	for _, a := range waiting {
		e.serve(a)
	}
}
