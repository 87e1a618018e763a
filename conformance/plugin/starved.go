package plugin

import (
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/starvation"
)

// starved adds up for how long the suite got no processor during a check. A plugin that is starved shares the machine with it, and its priority. What the
// plugin itself waited does not count: it could be its own doing.
type starved struct {
	mu    sync.Mutex
	total time.Duration
}

func (s *starved) add(span starvation.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += span.To.Sub(span.From)
}

// reset begins with the next check.
func (s *starved) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total = 0
}

// starvedShare is the part of a check in which the suite must have got no processor, so that starvation explains a time that passed.
const starvedShare = 4

// explains reports whether starvation explains that a time passed in a check that took so long, and for how long the suite was starved.
func (s *starved) explains(took time.Duration) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total, s.total >= max(took/starvedShare, starvation.Late)
}
