package sim

import (
	"net/http"
	"slices"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/record/watch"
)

// watcher is a client that is told of changes.
type watcher struct {
	c     *conn
	st    *stream
	key   objects.Key // an empty name is all of them
	last  int64       // revision that it was told of
	event func(objects.Event)
	held  []delayedEvent // of a server that is late
}

// watch tells of every change after a revision until the connection breaks.
func (c *conn) watch(r request, since int64, event func(objects.Event), failed func(error)) {
	st := c.open(failed)
	c.toServer(c.atServer(func() {
		s := c.server
		entry := s.note(&r)
		s.after(s.w.k.Between(leastServe, mostServe), func() {
			if st.over {
				return
			}
			if f := s.w.refusing(s, &r); f != nil {
				rep := s.w.refuse(f, &r)
				s.finish(entry, rep, func(reply) {})
				c.toClient(func() { st.fail(&refusedError{rep}) })
				return
			}
			s.finish(entry, reply{code: http.StatusOK}, func(reply) {})
			o := &watcher{c: c, st: st, key: r.key, last: since, event: event}
			s.watchers = append(s.watchers, o)
			missed, err := s.w.store.Since(since)
			if err != nil {
				c.toClient(func() { st.fail(err) })
				return
			}
			for _, e := range missed {
				o.writeConfig(e)
			}
		})
	}))
}

func (o *watcher) writeConfig(e objects.Event) {
	if e.Revision <= o.last || e.Version.Key.Resource != o.key.Resource || o.key.Name != "" && e.Version.Key.Name != o.key.Name {
		return
	}
	o.last = e.Revision
	if late := o.c.server.node.late(); late > 0 || len(o.held) > 0 {
		o.hold(e, late)
		return
	}
	o.deliver(e)
}

func (o *watcher) deliver(e objects.Event) {
	o.c.carry(1, smallMessage+e.Version.Size(), func() {
		if !o.st.over {
			o.event(e)
		}
	})
}

// learn is a change on its way from etcd to the watchers of an API server.
func (s *server) learn(e objects.Event) {
	s.watchers = slices.DeleteFunc(s.watchers, func(o *watcher) bool { return o.st.over })
	if !slices.ContainsFunc(s.watchers, func(o *watcher) bool { return o.key.Resource == e.Version.Key.Resource }) {
		return
	}
	s.node.stored.sendTo(&s.proc, 1, func() {
		s.after(s.lag, func() {
			for _, o := range slices.Clone(s.watchers) {
				o.writeConfig(e)
			}
		})
	})
}

// committed tells everybody of what changed.
func (w *world) committed() {
	events, err := w.store.Since(w.published)
	if err != nil {
		return // only what was published is compacted
	}
	for _, e := range events {
		w.published = e.Revision
		for _, n := range w.main.nodes {
			n.server.learn(e)
		}
		w.observer.observe(e)
		w.main.noticed(e)
		for _, f := range w.aggregated {
			f.noticed(e)
		}
	}
	w.store.Trim(keptEvents)
}

// noticed tells an operator.
func (w *world) noticed(e objects.Event) {
	if w.changed != nil {
		w.changed(e)
	}
}

// keptEvents is how many changes a watch can go back, at least: far more than anybody misses between a list and its watch. A real
// etcd is compacted after five minutes.
const keptEvents = 500

// observer records the states of observed objects.
type observer struct {
	w        *world
	unseen   []objects.Event           // committed, and not yet recorded
	sequence *watch.Sequence           // nil: nobody watches
	pictures map[watch.Target]*picture // of what was recorded last
	owners   watch.OwnerReader
	changes  bool // only what changed is recorded
}

// observe records a state of an observed object, when the first API server shows it.
func (o *observer) observe(e objects.Event) {
	if o.sequence == nil || !o.w.observed(e.Version.Key.Resource) {
		return
	}
	o.unseen = append(o.unseen, e)
	o.w.k.After(o.watchLag(), o.show)
}

// watchLag is how far behind etcd the API server is that shows a change first.
func (o *observer) watchLag() time.Duration {
	least := mostLag
	for _, n := range o.w.main.nodes {
		if n.server.runs() {
			least = min(least, n.server.lag)
		}
	}
	return least
}

// show records what was committed, as far as an API server runs that shows it. States that nobody could see are skipped.
func (o *observer) show() {
	if !slices.ContainsFunc(o.w.main.nodes, func(n *node) bool { return n.server.runs() }) {
		return
	}
	unseen := o.unseen
	o.unseen = nil
	for _, e := range unseen {
		t := watch.Target{GVR: e.Version.Key.Resource, Name: e.Version.Key.Name}
		if e.Type == apiwatch.Deleted {
			o.sequence.Absent(t, e.Version.ResourceVersion(), o.w.k.Now())
			continue
		}
		o.present(t, e.Version)
	}
}
