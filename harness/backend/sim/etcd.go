package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// etcd keeps the objects. There is one, for all API servers.
type etcd struct {
	proc
	waiting []*func() // what arrived while it did not run
	working []*func() // what is under way
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

// access lets an API server use etcd, or says after limit that it could not be reached. What was given up is not done later.
func (e *etcd) access(s *server, limit time.Duration, then func(ok bool)) {
	over := false
	end := func(ok bool) {
		if !over {
			over = true
			then(ok)
		}
	}
	timer := e.w.k.After(limit, s.bind(func() { end(false) }))
	s.node.stored.send(0, func() { e.admit(func() { s.node.stored.send(1, s.bind(func() { timer.Stop(); end(true) })) }) })
}

// admit works on a request as soon as it runs. One that is under way when it ends is sent again by the API server's client, which
// sees the connection break: it is not lost, and nobody waits for a time-out.
func (e *etcd) admit(f func()) { e.serve(&f) }

func (e *etcd) serve(f *func()) {
	if !e.lives() || e.phase == starting {
		e.waiting = append(e.waiting, f)
		return
	}
	e.working = append(e.working, f)
	e.after(e.w.k.Between(leastEtcd, mostEtcd), func() {
		e.working = slices.DeleteFunc(e.working, func(o *func()) bool { return o == f })
		(*f)()
	})
}

// serveWaiting takes on what waited for it.
func (e *etcd) serveWaiting() {
	waiting := e.waiting
	e.waiting = nil
	for _, f := range waiting {
		e.serve(f)
	}
}
