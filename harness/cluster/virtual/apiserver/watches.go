package apiserver

import (
	"sync"
	"time"
)

// Watches lets watches of some users be late, or ends them: what an overloaded watch cache and a compacted etcd do to an
// informer. Its zero value does nothing. All its methods may be called on nil.
type Watches struct {
	// Of decides whose watches are meant.
	Of func(*Request) bool

	mu      sync.Mutex
	late    time.Duration
	expired bool
	ended   chan struct{} // is closed when those that are open end
	changed chan struct{} // is closed when late changes
}

// NewWatches is about the watches of the requests that of selects. It is made in the bubble in which it is used.
func NewWatches(of func(*Request) bool) *Watches {
	return &Watches{Of: of, ended: make(chan struct{}), changed: make(chan struct{})}
}

// Delay lets them tell late what changes from now on; with 0 they tell everything now.
func (w *Watches) Delay(late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = late
	close(w.changed)
	w.changed = make(chan struct{})
}

// End ends those that are open: with 410 Gone, or as one ends that was long enough.
func (w *Watches) End(expired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired = expired
	close(w.ended)
	w.ended = make(chan struct{})
}

// mode returns the delay of a watch, a channel that is closed when the watch must end, and one that is closed when the delay changes.
func (w *Watches) mode(q *Request) (late time.Duration, ended, changed <-chan struct{}) {
	if w == nil || !w.Of(q) {
		return 0, nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late, w.ended, w.changed
}

// lastExpired reports whether the last call of End ended watches with 410 Gone.
func (w *Watches) lastExpired() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.expired
}
