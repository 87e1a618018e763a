package reconcile

import (
	"net/http"
	"time"
)

// ProbeTimeout is the time for an answer to a liveness probe: well over an election in etcd, which holds up reads for
// about a second, and below RequestTimeout. probeMin and probeMax bound the time between two probes; redialMin and
// redialMax bound it after a failure: a new connection does not help against an API server that answers with errors, and
// costs it a list and a watch for every cache.
const (
	ProbeTimeout = 2 * time.Second
	probeMin     = time.Second
	probeMax     = 5 * time.Second
	redialMin    = 100 * time.Millisecond
	redialMax    = 400 * time.Millisecond
)

// Liveness decides when to ask the API server whether it still reads from etcd, and when to close every connection, so
// that the load balancer picks another API server. A connection stays with its API server for as long as it lives, and
// an API server that lost etcd answers pings and keeps watches open on which nothing happens any more. Only a read that
// goes to etcd tells. (The kubelet does the same when it cannot renew its lease.)
type Liveness struct {
	// Interval (I) of the reporters.
	Interval time.Duration

	answered  time.Time // when an answer last showed that the API server reads from etcd
	throttled time.Time // when an API server last had too many requests
	retry     time.Duration
}

// Observe notes the answer to a request, at now. fromEtcd is false for a list, a watch or a read that may come from a cache.
func (l *Liveness) Observe(now time.Time, fromEtcd bool, code int) {
	if fromEtcd && code < http.StatusInternalServerError {
		l.answered = now
	}
	if code == http.StatusTooManyRequests {
		l.throttled = now
	}
}

// Due is how long to wait for the next probe: nothing is asked while other answers show that the API server is alive.
func (l *Liveness) Due(now time.Time) time.Duration { return l.period() - now.Sub(l.answered) }

// Alive reports whether a probe that began at an instant shows that the API server reads from etcd. A refusal is an
// answer; an error of the server's own, or none at all (code 0), is none. Where an API server asks to be left alone for a
// while (429), client-go waits and asks again until the deadline, so that the answer shows elsewhere.
func (l *Liveness) Alive(began time.Time, code int) bool {
	if !l.throttled.IsZero() && !l.throttled.Before(began) {
		return true
	}
	return code > 0 && code < http.StatusInternalServerError
}

// Probed is what follows a probe: how long to wait before the next one, and whether to close every connection.
func (l *Liveness) Probed(alive bool) (wait time.Duration, redial bool) {
	if alive {
		l.retry = 0
		return l.period(), false
	}
	l.retry = min(max(2*l.retry, redialMin), redialMax)
	return l.retry, true
}

// period is the time between two probes: a sixth of the reporters' interval, within bounds. With production's 30 s that
// is one small read in five seconds, and none from an aggregator that renews or watches a lease more often.
func (l *Liveness) period() time.Duration { return min(max(l.Interval/6, probeMin), probeMax) }
