package controller

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
)

// A step that failed is tried again by the back-off alone: changes in between ask for nothing more, and the next step sees them.
func TestFailedStepWaits(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(0, 0))
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second)
	q := workqueue.NewTypedRateLimitingQueueWithConfig(limit, workqueue.TypedRateLimitingQueueConfig[string]{Clock: c})
	defer q.ShutDown()
	tr := &trigger{clock: c}
	tr.use(q)

	tr.failed()
	tr.changed()
	if n := q.Len(); n != 0 {
		t.Errorf("a change during the back-off of a failed step asked for %d steps, want 0", n)
	}
	if tr.seen().IsZero() {
		t.Error("the change during the back-off is not known to the next step")
	}
	tr.changed()
	if n := q.Len(); n != 1 {
		t.Errorf("a change after a step began asked for %d steps, want 1", n)
	}
}
