package stream

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// S1-04: every replica is tried before the first wait. The waits double to their bound.
func TestRounds(t *testing.T) {
	var r Rounds
	want := RetryMin
	for round := range 8 {
		for replica := range 3 {
			if got := r.Next(3); got != replica {
				t.Fatalf("round %d: replica %d, want %d", round, got, replica)
			}
			wait := r.Failed(3)
			if replica < 2 && wait != 0 || replica == 2 && wait != want {
				t.Errorf("round %d, replica %d: wait %v, want %v after the last", round, replica, wait, want)
			}
		}
		want = min(2*want, RetryMax)
	}
	r.Stood()
	for range 2 {
		r.Failed(3)
	}
	if got := r.Failed(3); got != RetryMin {
		t.Errorf("after a stream: wait %v, want %v", got, RetryMin)
	}
}

// Without replicas there is nothing to try, and a wait before they are looked up again.
func TestNoReplicas(t *testing.T) {
	var r Rounds
	if r.Next(0) != -1 || r.Failed(0) != RetryMin || r.Next(1) != 0 {
		t.Error("no replicas")
	}
}

// Whatever number of replicas a look-up finds: an index is one of them, waits are in their bounds, and nobody tries for ever without one.
func TestAnyRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Rounds
		idle := 0
		for range rapid.IntRange(1, 60).Draw(t, "tries") {
			n := rapid.IntRange(0, 4).Draw(t, "replicas")
			if i := r.Next(n); i >= max(n, 0) || n > 0 && i < 0 {
				t.Fatalf("replica %d of %d", i, n)
			}
			if rapid.IntRange(0, 9).Draw(t, "stands") == 0 {
				r.Stood()
				idle = 0
			}
			wait := r.Failed(n)
			if idle++; wait > 0 {
				idle = 0
			}
			if wait != 0 && (wait < RetryMin || wait > RetryMax) || idle >= 4 {
				t.Fatalf("wait %v, %d tries without one", wait, idle)
			}
		}
	})
	if RetryMax >= time.Second {
		t.Error("a wait as long as an interval")
	}
}
