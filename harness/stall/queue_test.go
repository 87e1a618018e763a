package stall

import (
	"os"
	"testing"
	"time"
)

func TestParseWaited(t *testing.T) {
	for text, want := range map[string]time.Duration{"413781908 1271024309 1849\n": 1271024309, "0 0 0\n": 0} {
		if got, err := parseWaited([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1 2\n", "1 x 2\n", "1 -2 3\n"} {
		if got, err := parseWaited([]byte(text)); err == nil {
			t.Errorf("%q: %v, expected an error", text, got)
		}
	}
}

// TestQueue: the first look knows nothing yet, later ones no more than the time between them; what is gone waits for nothing.
func TestQueue(t *testing.T) {
	var q Queue
	began := time.Now()
	if first, err := q.Look(os.Getpid()); first != 0 || err != nil {
		t.Fatalf("the first look: %v, %v", first, err)
	}
	// A thread that was begun a moment before the first look may be missing there, and counts from its beginning.
	if second, err := q.Look(os.Getpid()); second < 0 || second > time.Since(began)+Waited || err != nil {
		t.Errorf("the second look: %v, %v after %v", second, err, time.Since(began))
	}
	const nobody = 1 << 30
	if w, err := q.Look(nobody); w != 0 || err != nil {
		t.Errorf("of nobody: %v, %v", w, err)
	}
}

// TestNewQueue: what was started a moment ago has waited since then, and so has a thread that is new.
func TestNewQueue(t *testing.T) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	var all time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/schedstat")
		if err != nil {
			continue // it has ended
		}
		waited, err := parseWaited(text)
		if err != nil {
			t.Fatal(err)
		}
		all = max(all, waited)
	}
	if w, err := NewQueue().Look(os.Getpid()); err != nil || w < all {
		t.Errorf("%v, %v, want %v at least", w, err, all)
	}
}

// A thread that is told to have waited longer than at the look before has waited that much longer.
func TestQueueTellsTheDifference(t *testing.T) {
	q := Queue{waited: map[string]time.Duration{}}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	for _, e := range entries {
		q.waited[e.Name()] = -time.Hour
	}
	if w, err := q.Look(os.Getpid()); err != nil || w < time.Hour {
		t.Errorf("%v, %v, want an hour at least", w, err)
	}
}
