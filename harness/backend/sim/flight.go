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
	st      stream
	r       request
	rep     reply
	begun   time.Time               // the request, or its answer
	hops    [mostHops]time.Duration // after how long each is behind it
	count   int
	ahead   int // hops before the API server has it
	timer   *kernel.Timer
	client  inquirer
	carried bool // it was carried out: the hops are those of the answer
}

// inquirer is who asked.
type inquirer interface {
	// limited is told that it may take longer than was drawn.
	limited()
	end(reply)
}

var _ loser = (*flight)(nil)

// lost implements loser.
func (f *flight) lost(err error) { f.client.end(reply{err: err}) }

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
// processors are to work something out. It is answered long before limit, unless its client hears that it is limited.
func (c *conn) fly(r request, limit time.Duration, client inquirer) bool {
	if r.merges() || !c.clear() || c.w.unauthorized(&r) || c.w.forbids(&r) != "" || c.w.refusing(c.server, &r) != nil {
		return false
	}
	k, stored := c.w.k, c.server.node.stored
	f := &flight{c: c, r: r, client: client, ahead: len(c.links), begun: k.Now()}
	f.cross(c.links)
	f.hop(k.Between(leastServe, mostServe))
	f.hop(stored.latency())
	f.hop(k.Between(leastEtcd, mostEtcd))
	f.hop(stored.latency())
	c.begin(&f.st, f)
	if 2*f.lasts() > min(limit, r.limit()) {
		f.land() // a slow way, on which it may be given up
		return true
	}
	c.w.flights = append(c.w.flights, f)
	f.timer = k.At(f.at(f.count-1), f.carry)
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

func (f *flight) hop(d time.Duration) {
	f.hops[f.count] = f.lasts() + d
	f.count++
}

// lasts is how long all hops take so far.
func (f *flight) lasts() time.Duration {
	if f.count == 0 {
		return 0
	}
	return f.hops[f.count-1]
}

// at is when a hop is behind it.
func (f *flight) at(hop int) time.Time { return f.begun.Add(f.hops[hop]) }

func (f *flight) cross(links []*link) {
	for _, l := range links {
		f.hop(l.latency())
	}
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
	f.begun, f.count = f.c.w.k.Now(), 0
	f.cross(f.c.backwards())
	f.timer = f.c.w.k.At(f.at(f.count-1), f.answer)
}

// noted is its line of the audit log, dated to when the API server got it.
func (f *flight) noted() *history.Request {
	e := f.c.server.note(&f.r)
	if e != nil {
		e.Received = f.at(f.ahead - 1)
	}
	return e
}

func (f *flight) answer() {
	f.leave()
	if !f.st.over {
		f.st.close()
		f.client.end(f.rep)
	}
}

func (f *flight) leave() {
	w := f.c.w
	w.flights = slices.DeleteFunc(w.flights, func(o *flight) bool { return o == f })
}
