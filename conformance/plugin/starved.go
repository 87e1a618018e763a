package plugin

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/starvation"
)

// starved adds up for how long the suite and the plugin waited for a processor during a check.
type starved struct {
	mu    sync.Mutex
	suite time.Duration // in which this process did not run

	// The rest is for one goroutine.
	plugin time.Duration
	pid    int // of the plugin; 0: not known yet
	of     int // the process that the suite started when pid was read
	queue  *starvation.Queue
	since  time.Time // of the last look at the queue
}

// add adds a span in which this process did not run.
func (s *starved) add(span starvation.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suite += span.To.Sub(span.From)
}

// reset begins with the next check.
func (s *starved) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suite, s.plugin = 0, 0
}

// readQueue adds for how long the plugin waited since the last call. A new process counts from its start. A process that cannot be read adds nothing.
func (p *Plugin) readQueue(ctx context.Context) {
	s, now := &p.starved, time.Now()
	period := now.Sub(s.since)
	s.since = now
	if pid := p.process(ctx); pid != s.pid {
		s.pid, s.queue = pid, starvation.NewQueue()
	}
	if s.pid > 0 {
		delayed, _ := s.queue.Read(s.pid, period)
		s.plugin += delayed
	}
}

// invisible is the process of a plugin that the suite did not start and that /proc does not show.
const invisible = -1

// process is the process of the plugin: what accepts connections, as a command may be a wrapper, or else what the suite started.
func (p *Plugin) process(ctx context.Context) int {
	started := 0
	if p.owned != nil {
		started = p.owned.now.PID()
	}
	if s := &p.starved; s.pid != 0 && s.of == started {
		return s.pid
	}
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	pid, err := p.PID(ctx)
	switch {
	case err != nil && started == 0:
		return invisible
	case err != nil:
		return started
	}
	p.starved.of = started
	return pid
}

// starvedShare is the part of a check in which one process must have waited for a processor, so that starvation explains a time that passed.
const starvedShare = 4

// loads begins the ids of checks that make load themselves. A plugin waits for a processor in them, because it is in use.
const loads = "KMS2-LOAD-"

// explains reports whether starvation explains that a time passed in a check that took so long, and for how long a process waited.
func (s *starved) explains(id string, took time.Duration) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := s.suite
	if !strings.HasPrefix(id, loads) {
		waited = max(waited, s.plugin)
	}
	return waited, waited >= max(took/starvedShare, starvation.Late)
}
