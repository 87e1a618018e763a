package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// An orphan that claims a time to come is as old as its aggregator has known it: one that takes over later has as much longer.
func TestOrphanOfAClockAhead(t *testing.T) {
	bound := newFacts(disabled(func(*world) {})).run.Timing.CleanupBound()
	for ahead, later := range map[time.Duration]bool{0: false, time.Minute: true} {
		v := newFacts(disabled(func(w *world) {
			w.at(2*sec, func(w *world) { w.record("backend", &history.Clock{Node: "cp-1", Ahead: ahead}) })
		}))
		orphan := span{v.complete.from.Add(5 * sec), v.complete.to}
		if got := cleaning(v, "cp-1", orphan, bound).total() < v.able.aggregator.total(); got != later {
			t.Errorf("clock ahead by %v: judged later %v, expected %v", ahead, got, later)
		}
		if cleaning(v, "cp-2", orphan, bound).total() != v.able.aggregator.total() {
			t.Error("another node's clock counts")
		}
	}
}
