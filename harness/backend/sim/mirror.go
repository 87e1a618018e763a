package sim

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
)

// mirror is an aggregator's copy of one object, or of all of a resource: one list, then a watch, and another list when that breaks.
type mirror struct {
	a       *aggregator
	key     objects.Key
	items   []*objects.Version // by name
	full    bool               // after the first list
	backoff time.Duration
	failed  time.Time        // when it last backed off
	seen    int64            // revision that it is a copy of
	own     *objects.Version // what the API server returned to a request of its own
	until   time.Time        // how long that is preferred to an older copy
	listed  listing          // the same for a list of its own
}

func newMirror(a *aggregator, key objects.Key) *mirror { return &mirror{a: a, key: key} }

func (m *mirror) list() {
	m.a.ask(request{verb: verbList, key: m.key, patient: true}, func(rep reply) {
		if rep.problem() != nil {
			m.again()
			return
		}
		m.items = slices.Clone(rep.list)
		if !m.full {
			m.full = true
			m.a.synced()
		}
		m.a.changed()
		m.seen = rep.revision
		m.watch()
	})
}

func (m *mirror) watch() {
	m.a.connected(func(c *conn, err error) {
		if err != nil {
			m.again()
			return
		}
		r, life := m.a.request(request{verb: verbWatch, key: m.key}), m.a.life
		c.watch(r, m.seen, func(e objects.Event) { m.a.Enter(life, func() { m.event(e) }) }, func(err error) { m.a.Enter(life, func() { m.ended(err) }) })
	})
}

// ended is the end of a watch. One that was closed goes on where it ended; after any other a list follows, at the earliest when the API
// server wants to be asked again.
func (m *mirror) ended(err error) {
	var refused *refusedError
	switch {
	case errors.Is(err, errClosed):
		m.later(0, m.watch)
	case errors.As(err, &refused):
		m.refused(refused.reply)
	default:
		m.again()
	}
}

// refused is a watch that was refused: with 429 it is tried again, else a list comes first.
func (m *mirror) refused(rep reply) {
	if rep.code == http.StatusTooManyRequests {
		m.later(rep.again, m.watch)
		return
	}
	m.again()
}

// again lists anew after a while.
func (m *mirror) again() { m.later(0, m.list) }

// later tries after a back-off, and not before least. As client-go's Reflector does, it begins anew with the shortest when it was not needed for
// two minutes, and not when a list was successful: its watch may not be.
func (m *mirror) later(least time.Duration, try func()) {
	now := m.a.w.k.Now()
	if now.Sub(m.failed) > backoffReset {
		m.backoff = 0
	}
	m.failed = now
	m.backoff = min(max(2*m.backoff, watchRetryMin), watchRetryMax)
	m.a.retry(max(least, m.backoff+m.a.w.k.Between(0, m.backoff/10)), try)
}

func (m *mirror) event(e objects.Event) {
	m.seen = e.Revision
	i, found := slices.BinarySearchFunc(m.items, e.Version.Key.Name, func(v *objects.Version, name string) int { return strings.Compare(v.Key.Name, name) })
	m.items = slices.Clone(m.items)
	switch {
	case e.Type == apiwatch.Deleted && found:
		m.items = slices.Delete(m.items, i, i+1)
	case e.Type == apiwatch.Deleted:
	case found:
		m.items[i] = e.Version
	default:
		m.items = slices.Insert(m.items, i, e.Version)
	}
	m.a.changed()
}

// saw remembers what the API server returned.
func (m *mirror) saw(v *objects.Version) {
	m.own, m.until = v, m.a.w.k.Now().Add(ownViewMemory)
}

// latest is the newest known version of a single object; nil if it does not exist.
func (m *mirror) latest() *objects.Version {
	if len(m.items) == 0 {
		return nil
	}
	cached := m.items[0]
	if m.own == nil || m.a.w.k.Now().After(m.until) || m.own.Revision <= cached.Revision || m.own.UID != cached.UID {
		m.own = nil
		return cached
	}
	return m.own
}

func (a *aggregator) isConnected() bool { return a.c != nil && !a.c.broken }

// connected gives the aggregator's connection, which all its requests share.
func (a *aggregator) connected(then func(*conn, error)) {
	if a.isConnected() {
		then(a.c, nil)
		return
	}
	a.dialled = append(a.dialled, then)
	if len(a.dialled) > 1 {
		return
	}
	life := a.life
	a.w.dialBalanced(a.w.front, func(c *conn, err error) {
		if a.life != life {
			if c != nil {
				c.fail(errReset)
			}
			return
		}
		a.Enter(a.life, func() {
			a.c = c
			waiting := a.dialled
			a.dialled = nil
			for _, then := range waiting {
				then(c, err)
			}
		})
	})
}

func (a *aggregator) disconnect() {
	a.dialled = nil
	if c := a.c; c != nil {
		a.c = nil
		c.fail(errReset)
	}
}

// ask makes a request with the aggregator's time-out.
func (a *aggregator) ask(r request, done func(reply)) { a.askWithin(requestTimeout, r, done) }

func (a *aggregator) askWithin(limit time.Duration, r request, done func(reply)) {
	q := &question{a: a, life: a.life, until: a.w.k.Now().Add(limit), r: r, done: done, etcd: r.asksEtcd()}
	if a.isConnected() {
		if r = a.request(r); !a.c.fly(r, limit, q) {
			q.limited()
			a.c.ask(r, q.end)
		}
		return
	}
	if len(a.dialled) > 0 || !a.w.refuses(a.w.front) {
		q.limited()
	}
	a.dialAndAsk(q, r)
}

func (a *aggregator) dialAndAsk(q *question, r request) {
	a.connected(func(c *conn, err error) {
		if err != nil {
			q.end(reply{err: err})
			return
		}
		c.ask(a.request(r), q.end)
	})
}

// question is a request of an aggregator that it gives up at an instant.
type question struct {
	a     *aggregator
	life  int
	until time.Time
	limit *kernel.Timer
	over  bool
	r     request
	etcd  bool // an answer shows that the API server has its etcd
	done  func(reply)
}

// asksEtcd: a write, or a read of a lease, as for the real aggregator.
func (r request) asksEtcd() bool {
	switch r.verb {
	case verbGet:
		return r.key == leaseKey()
	default:
		return r.verb != verbList && r.verb != verbWatch
	}
}

// heard notes when an answer showed that.
func (q *question) heard(rep reply) {
	if q.etcd && rep.err == nil && rep.code < http.StatusInternalServerError {
		q.a.heard = q.a.w.k.Now()
	}
}

// limited sees to it that it is given up.
func (q *question) limited() {
	q.limit = q.a.w.k.AtIn(q.until, q.a, q.life, func() { q.end(reply{err: errTimeout}) })
}

// repeat asks again after a while, as client-go does where an answer has Retry-After, and gives up at the deadline.
func (q *question) repeat(after time.Duration) bool {
	if q.a.life != q.life || q.a.w.seams.Hammer {
		return false
	}
	k := q.a.w.k
	switch at := k.Now().Add(after); {
	case q.r.patient:
		k.AtIn(at, q.a, q.life, func() { q.a.ask(q.r, q.done) })
	case at.After(q.until):
		k.AtIn(q.until, q.a, q.life, func() { q.done(reply{err: errTimeout}) })
	default:
		k.AtIn(at, q.a, q.life, func() { q.a.askWithin(q.until.Sub(k.Now()), q.r, q.done) })
	}
	return true
}

func (q *question) end(rep reply) {
	q.limit.Stop()
	if q.over {
		return
	}
	q.over = true
	if rep.code == http.StatusTooManyRequests {
		q.a.throttled = q.a.w.k.Now()
	}
	if rep.again > 0 && q.repeat(rep.again) {
		q.heard(rep)
		return
	}
	if !q.a.paused && q.a.life == q.life {
		q.heard(rep)
		q.done(rep)
		return
	}
	q.a.Enter(q.life, func() { q.heard(rep); q.done(rep) })
}
