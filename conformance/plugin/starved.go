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

// take returns the sum since it was called last.
func (s *starved) take() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.total
	s.total = 0
	return total
}

// starvedShare is the part of a check in which the suite must have got no processor, so that starvation explains a time that passed.
const starvedShare = 4
