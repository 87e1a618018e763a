package sim

import (
	"math"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
)

// impairment is the part of a link's fault that depends on the direction or the size of messages, or is about handshakes.
//
// It leaves out that senders of a throttled or lossy link notice that their receiver has gone: what is under way on a connection that has
// broken is lost, where a real network may deliver it.
type impairment struct {
	direction  string // that a cut link loses; empty: both
	rate, loss int
	free       [2]time.Time // when what was sent will have arrived
	queued     []*queued
}

// queued is a message on a throttled or lossy link.
type queued struct {
	timer *kernel.Timer
	again func() // sends it over the link as it is then
}

// Sizes in bytes: of a message without content, and of a TLS handshake with client certificates in one direction.
const (
	smallMessage  = 300
	handshakeSize = 2100
)

// What harness/netfault has as well: how Linux repeats lost segments.
const (
	segmentSize      = 1460
	segmentTimeout   = 200 * time.Millisecond
	handshakeTimeout = time.Second
	longestRepeat    = time.Minute
)

// loses reports whether messages of a direction are lost: 0 are requests.
func (l *link) loses(direction int) bool {
	return l.silent() && (l.direction == "" || (l.direction == "requests") == (direction == 0))
}

// queues reports whether messages wait for earlier ones, and for their size.
func (l *link) queues() bool { return l.state == history.LinkThrottled || l.state == history.LinkLossy }

// queue sends a message over a throttled or lossy link.
func (l *link) queue(scope kernel.Scope, incarnation, direction, bytes int, again, arrive func()) {
	at := l.w.k.Now()
	if l.free[direction].After(at) {
		at = l.free[direction]
	}
	if l.state == history.LinkThrottled {
		at = at.Add(time.Duration(bytes) * time.Second / time.Duration(l.rate))
	}
	for left := bytes; left > 0 && l.state == history.LinkLossy; left -= segmentSize {
		at = at.Add(l.repeated(segmentTimeout, 1))
	}
	if at = at.Add(l.latency()); at.Before(l.last[direction]) {
		at = l.last[direction]
	}
	l.free[direction] = at
	l.wait(at, scope, incarnation, again, arrive)
}

// wait lets a message arrive at some time, unless the fault changes before.
func (l *link) wait(at time.Time, scope kernel.Scope, incarnation int, again, arrive func()) {
	q := &queued{again: again}
	q.timer = l.w.k.AtIn(at, scope, incarnation, func() {
		l.queued = slices.DeleteFunc(l.queued, func(o *queued) bool { return o == q })
		arrive()
	})
	l.queued = append(l.queued, q)
}

// unqueue gives what is under way to be sent again.
func (l *link) unqueue() (again []func()) {
	for _, q := range l.queued {
		q.timer.Stop()
		again = append(again, q.again)
	}
	l.queued, l.free = nil, [2]time.Time{}
	return again
}

// repeated is how long it takes until as many segments in a row get through, if all of them are repeated together.
func (l *link) repeated(timeout time.Duration, segments int) (wait time.Duration) {
	if l.state != history.LinkLossy {
		return 0
	}
	through := math.Pow(1-float64(l.loss)/100, float64(segments))
	for ; l.w.k.Rand().Float64() >= through && wait < longestRepeat; timeout *= 2 {
		wait += timeout
	}
	return wait
}

// establishing is how much longer it takes until a connection over the link is established.
func (l *link) establishing() time.Duration { return l.repeated(handshakeTimeout, 2) }

// reach calls then when the packets that establish a connection have got through.
func (l *link) reach(then func()) {
	if wait := l.establishing(); wait > 0 {
		l.wait(l.w.k.Now().Add(wait), nil, 0, then, then)
		return
	}
	then()
}

// shake calls then when the TLS handshake of a connection over the links is done.
func shake(links []*link, then func()) {
	for i, l := range links {
		if l.state == history.LinkSlowHandshake {
			rest := func() { shake(links[i+1:], then) }
			l.wait(l.w.k.Now().Add(l.delay), nil, 0, rest, rest)
			return
		}
	}
	then()
}
