package virtual

import (
	"sync"
	"time"
	"unsafe"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/history"
)

// clocks has how far the clocks of machines are ahead of the true time, by role and node. Aggregators have one clock,
// reporters that of their node.
type clocks struct {
	mu    sync.Mutex
	ahead map[[2]string]time.Duration
}

func (m *machine) SetClock(role, node string, ahead time.Duration) {
	m.clocks.mu.Lock()
	defer m.clocks.mu.Unlock()
	if m.clocks.ahead == nil {
		m.clocks.ahead = map[[2]string]time.Duration{}
	}
	m.clocks.ahead[[2]string{role, node}] = ahead
}

// clockOf is the clock that a program reads. A plugin has the true time: its journal is what others are judged by.
func (m *machine) clockOf(p history.Process) clock.WithTicker {
	switch p.Role {
	case history.RolePlugin:
		return clock.RealClock{}
	case history.RoleAggregator:
		return wrongClock{of: m, key: [2]string{p.Role, ""}}
	}
	return wrongClock{of: m, key: [2]string{"", p.Node}}
}

// wrongClock has a time of its own; timers and tickers go by the true one.
type wrongClock struct {
	clock.RealClock
	of  *machine
	key [2]string
}

func (c wrongClock) Now() time.Time {
	c.of.clocks.mu.Lock()
	defer c.of.clocks.mu.Unlock()
	return setAhead(time.Now(), c.of.clocks.ahead[c.key])
}

// reading is what a time.Time consists of that was read from the monotonic clock, too.
type reading struct {
	wall     uint64 // a one, 33 bits of seconds since 1885, 30 bits of nanoseconds
	measured int64  // nanoseconds of the monotonic clock
	_        *time.Location
}

// setAhead is now on a machine whose wall clock was set. Its monotonic clock, by which Go measures how much later one time is than another, never
// is. In a bubble time.Now does not read it, and no method of time.Time adds that.
func setAhead(now time.Time, ahead time.Duration) time.Time {
	wall := now.Add(ahead)
	since := wall.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	out := (*reading)(unsafe.Pointer(&wall))
	out.wall, out.measured = 1<<63|uint64(since)<<30|uint64(wall.Nanosecond()), int64(now.Sub(bubble.Begin()))
	return wall
}

func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
