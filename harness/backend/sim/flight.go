package sim

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// flight is a request on a way on which nothing is wrong. Nothing happens to it but that time passes, so when it is everywhere is
// drawn at its beginning, and two events are enough: it is carried out, and it is answered. Before anything changes that a way
// depends on, all flights land: each goes on from where it is, one hop after another, like every other request.
//
// What a flight does not do is queue behind others on a link: an answer may overtake, or be overtaken by, what a watch tells. On a
// connection of many streams it may.
type flight struct {
	c       *conn
	st      *stream
	r       request
	rep     reply
	hops    [mostHops]time.Time // when each is behind it
	count   int
	ahead   int // hops before the API server has it
	timer   *kernel.Timer
	done    func(reply)
	carried bool // it was carried out: the hops are those of the answer
	// landed tells the client that it may take longer than was drawn.
	landed func()
}

// Hops of a request: two links at most, the API server's own work, and etcd with the way to it and back.
const (
	hopServe = iota // counted from the last link on
	hopStored
	hopEtcd
	hopBack
	hopsServed
	mostLinks = 2
	mostHops  = mostLinks + hopsServed
)

// fly sends a request at once through all that is well; false, and nothing done, where something is not, or where the API server's
// processors are to work something out. It is answered long before limit, unless landed is called.
func (c *conn) fly(r request, limit time.Duration, landed func(), done func(reply)) bool {
	if r.merges() || !c.clear() || c.w.forbids(&r) != "" {
		return false
	}
	f := &flight{c: c, r: r, done: done, landed: landed, ahead: len(c.links)}
	k, stored := c.w.k, c.server.node.stored
	at := f.cross(c.links, k.Now())
	at = f.hop(at, k.Between(leastServe, mostServe))
	at = f.hop(at, stored.latency())
	at = f.hop(at, k.Between(leastEtcd, mostEtcd))
	at = f.hop(at, stored.latency())
	f.st = c.open(func(err error) { done(reply{err: err}) })
	if 2*at.Sub(k.Now()) > min(limit, r.limit()) {
		f.land() // a slow way, on which it may be given up
		return true
	}
	c.w.flights = append(c.w.flights, f)
	f.timer = k.At(at, f.carry)
	return true
}

// clear says whether a request gets to etcd and back with nothing in its way.
func (c *conn) clear() bool {
	s := c.server
	if c.broken || c.unheard || s == nil || s.life != c.life || !s.runs() || !s.w.etcd.runs() || s.node.stored.silent() || len(c.links) == 0 || len(c.links) > mostLinks {
		return false
	}
	return !slices.ContainsFunc(c.links, (*link).silent)
}

func (f *flight) hop(from time.Time, d time.Duration) time.Time {
	at := from.Add(d)
	f.hops[f.count] = at
	f.count++
	return at
}

func (f *flight) cross(links []*link, at time.Time) time.Time {
	for _, l := range links {
		at = f.hop(at, l.latency())
	}
	return at
}

// carry is the instant at which it is carried out. The answer flies back.
func (f *flight) carry() {
	s := f.c.server
	if f.st.over {
		f.leave()
		s.finish(f.noted(), canceled(), func(reply) {})
		return
	}
	f.rep, f.carried = s.perform(&f.r), true
	s.finish(f.noted(), f.rep, func(reply) {})
	f.count = 0
	f.timer = f.c.w.k.At(f.cross(f.c.backwards(), f.c.w.k.Now()), f.answer)
}

// noted is its line of the audit log, dated to when the API server got it.
func (f *flight) noted() *history.Request {
	e := f.c.server.note(&f.r)
	if e != nil {
		e.Received = f.hops[f.ahead-1]
	}
	return e
}

func (f *flight) answer() {
	f.leave()
	if !f.st.over {
		f.st.close()
		f.done(f.rep)
	}
}

func (f *flight) leave() {
	w := f.c.w
	w.flights = slices.DeleteFunc(w.flights, func(o *flight) bool { return o == f })
}
