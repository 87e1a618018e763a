package controller

import (
	"testing"
	"time"
)

// Nothing that is due waits longer than half an interval for a clock that was set meanwhile, and nothing that is overdue spins.
func TestWakeAfter(t *testing.T) {
	const ms = time.Millisecond
	for due, want := range map[time.Duration]time.Duration{-time.Hour: ms, 0: ms, 3 * time.Second: 3 * time.Second, 2 * time.Minute: 15 * time.Second} {
		if got := wakeAfter(due, 30*time.Second); got != want {
			t.Errorf("due in %v: looks after %v, expected %v", due, got, want)
		}
	}
}
