package reconcile

import "time"

// Newest is the newest known version of something that an informer caches: the cached one, or what the API server
// returned to a request of the aggregator's own while the watch has not shown it yet. A decision from a cache older than
// the aggregator's own write would write the old answer again. The zero value remembers nothing.
type Newest[V any] struct {
	own   V
	until time.Time // zero while nothing is remembered
}

// Saw remembers what the API server returned at now.
func (n *Newest[V]) Saw(own V, now time.Time) { n.own, n.until = own, now.Add(ownReadMemory) }

// Latest is the newest version. newer reports whether a version of the aggregator's own is newer than the cached one.
func (n *Newest[V]) Latest(cached V, now time.Time, newer func(own V) bool) V {
	if n.until.IsZero() {
		return cached
	}
	if now.After(n.until) || !newer(n.own) {
		*n = Newest[V]{}
		return cached
	}
	return n.own
}
