package virtual

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/history"
)

// clocks are how far the clocks of machines are ahead of the true time, by role and node.
type clocks struct {
	mu    sync.Mutex
	ahead map[[2]string]time.Duration
}

// SetClock implements live.Memory.
func (m *machine) SetClock(role, node string, ahead time.Duration) {
	m.clocks.mu.Lock()
	defer m.clocks.mu.Unlock()
	if m.clocks.ahead == nil {
		m.clocks.ahead = map[[2]string]time.Duration{}
	}
	m.clocks.ahead[[2]string{role, node}] = ahead
}

// clockOf is the clock that a program reads.
func (m *machine) clockOf(p history.Process) clock.WithTicker {
	key := [2]string{"", p.Node}
	if p.Role == history.RoleAggregator {
		key = [2]string{p.Role, ""}
	}
	return wrongClock{of: m, key: key}
}

// wrongClock has a time of its own; timers and tickers go by the true one.
type wrongClock struct {
	clock.RealClock
	of  *machine
	key [2]string
}

// Now implements clock.PassiveClock.
func (c wrongClock) Now() time.Time {
	c.of.clocks.mu.Lock()
	defer c.of.clocks.mu.Unlock()
	return time.Now().Add(c.of.clocks.ahead[c.key])
}

// Since implements clock.PassiveClock.
func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
