package reconcile

import (
	"time"
)

// Every time-out of the aggregator, with its reason. The aggregator promises A = 1 s from a visible change to the
// rollup, also right after an outage, so nothing here may wait longer once the API server answers again.
const (
	// WriteRetryMin and WriteRetryMax bound the back-off of a pass that failed. It doubles from one to the other.
	WriteRetryMin = 25 * time.Millisecond
	WriteRetryMax = 400 * time.Millisecond
	// RequestTimeout is the deadline of one read or write. An API server that is alive answers in milliseconds; a
	// dead connection is found by HTTP/2 pings before this.
	RequestTimeout = 5 * time.Second
	// DialTimeout bounds connecting to an address that swallows packets.
	DialTimeout = time.Second
	// FirstByteTimeout bounds the wait for the first byte on a new connection, which is the server's part of the TLS
	// handshake. Longer than DialTimeout, because the server has to compute for it, but not client-go's ten seconds.
	FirstByteTimeout = 2 * time.Second
	// AlternativeTimeout bounds connecting to an alternative API server, TLS included. It ends before a liveness probe does, which
	// would be cancelled without blocking the alternative.
	AlternativeTimeout = ProbeTimeout * 3 / 4
	// AlternativeBlock is how long an alternative is not used after an error. API servers that accept connections and serve nothing are
	// found by a probe each, one after another. Of seven API servers three may be so: the first must not be tried again before the
	// fourth. Longer is of no use: an alternative that works is not left for one that is unblocked, and all may have failed at once, as
	// without etcd.
	AlternativeBlock = 5 * ProbeTimeout / 2
	// GreetingTimeout is how long the EncryptionHealth may take to show a stream before it is refused: a read and a write, each within its time-out.
	GreetingTimeout = 2 * RequestTimeout
	// ownReadMemory is how long what the API server returned is preferred to an older cache. It only has to outlast the
	// watch's delay; it ends so that an API server restored from a backup is believed again.
	ownReadMemory = 10 * time.Second
)

// WakeAfter is how long after now the next pass begins although nothing has changed: when the clock changes the
// decision, and after half an interval at the latest. next is core.Decision.NextWake, zero if the clock changes nothing.
//
// A timer does not notice that the clock is set. Without the upper bound, a clock that was behind would delay everything
// that is due by as much, and a report that was stale by a clock that was ahead would stay stale until the next report.
func WakeAfter(next, now time.Time, interval time.Duration) time.Duration {
	latest := max(interval/2, time.Millisecond)
	if next.IsZero() {
		return latest
	}
	return min(max(next.Sub(now), 0), latest)
}

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
