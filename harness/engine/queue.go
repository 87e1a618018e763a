package engine

import (
	"sync"

	"github.com/kmsharness/kmsharness/harness/history"
)

// queue takes events from the history's lock to the engine's goroutine, in order.
type queue struct {
	mu     sync.Mutex
	events []history.Event
	wake   func()
}

func (q *queue) push(e history.Event) {
	q.mu.Lock()
	q.events = append(q.events, e)
	q.mu.Unlock()
	q.wake()
}

func (q *queue) pop() (history.Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return history.Event{}, false
	}
	e := q.events[0]
	q.events = q.events[1:]
	return e, true
}
