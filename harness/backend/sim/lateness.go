package sim

import (
	"errors"
	"time"

	objects "github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Ways in which an API server ends a watch.
var (
	errClosed  = errors.New("watch closed")
	errExpired = errors.New("too old resource version")
)

// delayedEvent is one that comes late.
type delayedEvent struct {
	objects.Event
	due time.Time
}

// late is how late a node's API server tells the aggregators what changed. What they ask for they are told at once: lists and reads come
// from etcd.
func (n *node) late() time.Duration {
	if d, ok := n.w.late[n.name]; ok {
		return d
	}
	return n.w.late[""]
}

// hold tells of a change later, in its turn.
func (o *watcher) hold(e objects.Event, late time.Duration) {
	k := o.c.w.k
	due := k.Now().Add(late)
	if n := len(o.held); n > 0 && o.held[n-1].due.After(due) {
		due = o.held[n-1].due
	}
	o.held = append(o.held, delayedEvent{e, due})
	k.At(due, func() { o.let(k.Now()) })
}

// let delivers what was due at an instant.
func (o *watcher) let(at time.Time) {
	for len(o.held) > 0 && !o.held[0].due.After(at) {
		e := o.held[0].Event
		o.held = o.held[1:]
		o.deliver(e)
	}
}

// caughtUp delivers everything.
func (o *watcher) caughtUp() {
	held := o.held
	o.held = nil
	for _, e := range held {
		o.deliver(e.Event)
	}
}

// beLate lets the watches of a node, or of all, be late from now on. When they no longer are, their cache has caught up.
func (w *world) beLate(node string, late time.Duration) {
	if node == "" || w.late == nil {
		w.late = map[string]time.Duration{}
	}
	w.late[node] = late
	w.log.Record(w.k.Now(), "backend", &history.Watches{Node: node, Late: late})
	for _, n := range w.main.nodes {
		if n.late() == 0 {
			for _, o := range n.server.watchers {
				o.caughtUp()
			}
		}
	}
}

// endWatches ends all that are open at an API server.
func (s *server) endWatches(err error) {
	all := s.watchers
	s.watchers = nil
	for _, o := range all {
		o.held = nil
		o.c.toClient(func() { o.st.fail(err) })
	}
}
