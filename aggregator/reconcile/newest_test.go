package reconcile

import (
	"testing"
	"time"
)

// An own read is preferred until the cache has passed it, and not for ever, should an API server's versions begin anew.
func TestNewest(t *testing.T) {
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	var n Newest[int]
	expect := func(when string, cached, want int) {
		t.Helper()
		if got := n.Latest(cached, now, func(own int) bool { return own > cached }); got != want {
			t.Errorf("%s: %d, expected %d", when, got, want)
		}
	}
	expect("before a read", 10, 10)
	n.Saw(20, now)
	expect("the watch shows nothing new", 10, 20)
	expect("the watch shows what was before", 15, 20)
	expect("the watch has passed it", 21, 21)
	expect("forgotten", 10, 10)
	n.Saw(30, now)
	now = now.Add(ownReadMemory + time.Second)
	expect("long after a read", 10, 10)
}
