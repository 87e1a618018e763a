package controller

import (
	"testing"
	"time"
)

// Nothing that is due waits longer than half an interval for a clock that was set meanwhile, and nothing that is overdue spins. What
// the clock changes no more is looked at all the same.
func TestWakeAfter(t *testing.T) {
	const ms = time.Millisecond
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	if got := wakeAfter(time.Time{}, now, 30*time.Second); got != 15*time.Second {
		t.Errorf("nothing due: looks after %v, expected half an interval", got)
	}
	for due, want := range map[time.Duration]time.Duration{-time.Hour: ms, 0: ms, 3 * time.Second: 3 * time.Second, 2 * time.Minute: 15 * time.Second} {
		if got := wakeAfter(now.Add(due), now, 30*time.Second); got != want {
			t.Errorf("due in %v: looks after %v, expected %v", due, got, want)
		}
	}
}
