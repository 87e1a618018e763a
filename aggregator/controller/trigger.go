package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/aggregator/reconcile"
)

// there is one thing to work on: the operator's CR as a whole.
const theKey = "cluster"

type queue = workqueue.TypedRateLimitingInterface[string]

func newQueue() queue {
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[string](reconcile.WriteRetryMin, reconcile.WriteRetryMax)
	return workqueue.NewTypedRateLimitingQueue(limit)
}

// trigger hands changes to the queue of the current term as leader. Between terms they are dropped: a term begins by
// looking at everything.
type trigger struct {
	clock    clock.PassiveClock
	mu       sync.Mutex
	queue    queue
	since    time.Time // of the first change that no step has seen yet
	retrying bool      // a step failed and waits for its next try
}

func (t *trigger) use(q queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue, t.retrying = q, false
}

// changed asks for a step. One that failed is tried again soon enough to see the change: an API server that refuses may end connections as
// well, and each watch that begins again is a change.

func (t *trigger) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil {
		return
	}
	if t.since.IsZero() {
		t.since = t.clock.Now()
	}
	if !t.retrying {
		t.queue.Add(theKey)
	}
}

// failed asks for another try after the back-off.
func (t *trigger) failed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retrying = true
	t.queue.AddRateLimited(theKey)
}

// seen is called by a step before it looks; it returns when the oldest change that it will see came in.
func (t *trigger) seen() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.since
	t.since, t.retrying = time.Time{}, false
	return since
}
