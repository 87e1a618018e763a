package sim

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	watch "github.com/kmsharness/kmsharness/internal/informer"
)

// informer is an aggregator's cache of one object, or of all of a resource, in the way of client-go's Reflector: one list, then a watch,
// and another list when that breaks.
type informer struct {
	a       *aggregator
	key     objects.Key
	items   []*objects.Version // by name
	full    bool               // after the first list
	backoff time.Duration
	failed  time.Time // when it last backed off
	seen    int64     // revision that it is a copy of
	own     reconcile.Newest[*objects.Version]
	listed  reconcile.Newest[listing]
	last    listing // that nodes were read from
}

func newInformer(a *aggregator, key objects.Key) *informer { return &informer{a: a, key: key} }

func (i *informer) list() {
	i.a.ask(request{verb: verbList, key: i.key, patient: true}, func(rep reply) {
		if rep.problem() != nil {
			i.again()
			return
		}
		i.items = slices.Clone(rep.list)
		if !i.full {
			i.full = true
			i.a.synced()
		}
		i.a.changed()
		i.seen = rep.revision
		i.watch()
	})
}

func (i *informer) watch() {
	i.a.connected(func(c *conn, err error) {
		if err != nil {
			i.again()
			return
		}
		r, incarnation := i.a.request(request{verb: verbWatch, key: i.key}), i.a.incarnation
		c.watch(r, i.seen, func(e objects.Event) { i.a.Enter(incarnation, func() { i.event(e) }) }, func(err error) { i.a.Enter(incarnation, func() { i.ended(err) }) })
	})
}

// ended is the end of a watch. One that was closed goes on where it ended; after any other a list follows, at the earliest when the API
// server wants to be asked again.
func (i *informer) ended(err error) {
	var refused *refusedError
	switch {
	case errors.Is(err, errClosed):
		i.later(0, i.watch)
	case errors.As(err, &refused):
		i.refused(refused.reply)
	default:
		i.again()
	}
}

// refused is a watch that was refused: with 429 it is tried again, else a list comes first.
func (i *informer) refused(rep reply) {
	if rep.code == http.StatusTooManyRequests {
		i.later(rep.again, i.watch)
		return
	}
	i.again()
}

// again lists anew after a while.
func (i *informer) again() { i.later(0, i.list) }

// backoffReset is that of client-go's Reflector.
const backoffReset = 2 * time.Minute

// later tries after a back-off, and not before least. As client-go's Reflector does, it begins anew with the shortest when it was not needed for
// two minutes, and not when a list was successful: its watch may not be.
func (i *informer) later(least time.Duration, try func()) {
	now := i.a.w.k.Now()
	if now.Sub(i.failed) > backoffReset {
		i.backoff = 0
	}
	i.failed = now
	i.backoff = min(max(2*i.backoff, watch.RetryMin), watch.RetryMax)
	i.a.after(max(least, i.backoff+i.a.w.k.Between(0, i.backoff/10)), try)
}

func (i *informer) event(e objects.Event) {
	i.seen = e.Revision
	at, found := slices.BinarySearchFunc(i.items, e.Version.Key.Name, func(v *objects.Version, name string) int { return strings.Compare(v.Key.Name, name) })
	i.items = slices.Clone(i.items)
	switch {
	case e.Type == apiwatch.Deleted && found:
		i.items = slices.Delete(i.items, at, at+1)
	case e.Type == apiwatch.Deleted:
	case found:
		i.items[at] = e.Version
	default:
		i.items = slices.Insert(i.items, at, e.Version)
	}
	i.a.changed()
}

// saw remembers what the API server returned.
func (i *informer) saw(v *objects.Version) { i.own.Saw(v, i.a.w.k.Now()) }

// latest is the newest known version of a single object; nil if it does not exist.
func (i *informer) latest() *objects.Version {
	if len(i.items) == 0 {
		return nil
	}
	cached := i.items[0]
	return i.own.Latest(cached, i.a.w.k.Now(), func(own *objects.Version) bool { return own.Revision > cached.Revision && own.UID == cached.UID })
}

// listing is everything of a resource at a revision.
type listing struct {
	items    []*objects.Version
	revision int64
	created  map[string]time.Time
}

// sawAll remembers what the API server returned to a list, and gives the times of creation.
func (i *informer) sawAll(rep reply) map[string]time.Time {
	l := listing{items: rep.list, revision: rep.revision}
	i.listed.Saw(l, i.a.w.k.Now())
	return i.read(l)
}

// created is the newest known times of creation, by name.
func (i *informer) created() map[string]time.Time {
	return i.read(i.listed.Latest(listing{items: i.items}, i.a.w.k.Now(), func(own listing) bool { return own.revision > i.seen }))
}

// read gives the same map for the same objects.
func (i *informer) read(l listing) map[string]time.Time {
	if i.last.created == nil || !slices.Equal(i.last.items, l.items) {
		l.created = make(map[string]time.Time, len(l.items))
		for _, v := range l.items {
			l.created[v.Key.Name] = v.Created
		}
		i.last = l
	}
	return i.last.created
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
	incarnation := a.incarnation
	a.w.balancer.dialBalanced(a.w.front, func(c *conn, err error) {
		if a.incarnation != incarnation {
			if c != nil {
				c.fail(errReset)
			}
			return
		}
		a.Enter(a.incarnation, func() {
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
func (a *aggregator) ask(r request, done func(reply)) { a.askWithin(reconcile.RequestTimeout, r, done) }

func (a *aggregator) askWithin(limit time.Duration, r request, done func(reply)) *question {
	q := &question{a: a, incarnation: a.incarnation, until: a.w.k.Now().Add(limit), r: r, done: done, etcd: r.asksEtcd()}
	q.limit = a.w.k.AtIn(q.until, a, a.incarnation, func() { q.end(reply{err: errTimeout}) })
	a.connected(func(c *conn, err error) {
		if err != nil {
			q.end(reply{err: err})
			return
		}
		if !q.canceled {
			q.unsend = c.ask(a.request(r), q.end)
		}
	})
	return q
}

// question is a request of an aggregator that it gives up at an instant.
type question struct {
	a           *aggregator
	incarnation int
	until       time.Time
	limit       *kernel.Timer
	over        bool
	r           request
	etcd        bool // an answer shows that the API server has its etcd
	done        func(reply)
	unsend      func() // nil until it is sent
	canceled    bool
}

// cancel lets nobody wait for the answer any more: the API server carries out what it has not begun with only by chance.
func (q *question) cancel() {
	q.over, q.canceled = true, true
	q.limit.Stop()
	if q.unsend != nil {
		q.unsend()
	}
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

// heard notes an answer.
func (q *question) heard(rep reply) {
	if rep.err == nil {
		q.a.liveness.Observe(q.a.w.k.Now(), q.etcd, rep.code)
	}
}

// repeat asks again after a while, as client-go does where an answer has Retry-After, and gives up at the deadline.
func (q *question) repeat(after time.Duration) bool {
	if q.a.incarnation != q.incarnation || q.a.w.hooks.Hammer {
		return false
	}
	k := q.a.w.k
	switch at := k.Now().Add(after); {
	case q.r.patient:
		k.AtIn(at, q.a, q.incarnation, func() { q.a.ask(q.r, q.done) })
	case at.After(q.until):
		k.AtIn(q.until, q.a, q.incarnation, func() { q.done(reply{err: errTimeout}) })
	default:
		k.AtIn(at, q.a, q.incarnation, func() { q.a.askWithin(q.until.Sub(k.Now()), q.r, q.done) })
	}
	return true
}

func (q *question) end(rep reply) {
	q.limit.Stop()
	if q.over {
		return
	}
	q.over = true
	if rep.again > 0 && q.repeat(rep.again) {
		q.heard(rep)
		return
	}
	if !q.a.paused && q.a.incarnation == q.incarnation {
		q.heard(rep)
		q.done(rep)
		return
	}
	q.a.Enter(q.incarnation, func() { q.heard(rep); q.done(rep) })
}
