package engine

import (
	"sync"

	"github.com/kmsharness/kmsharness/harness/history"
)

// queue takes events from the history's lock to the engine's goroutine, in order.
type queue struct {
	mu     sync.Mutex
	events []history.Event
	first  int // of those that wait
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
	if q.first == len(q.events) {
		return history.Event{}, false
	}
	e := q.events[q.first]
	q.events[q.first] = history.Event{}
	if q.first++; q.first == len(q.events) {
		q.events, q.first = q.events[:0], 0
	}
	return e, true
}
