package starvation

import (
	"os"
	"testing"
	"time"
)

func TestParseUsage(t *testing.T) {
	for text, want := range map[string]usage{"413781908 1271024309 1849\n": {413781908, 1271024309}, "0 0 0\n": {}} {
		if got, err := parseUsage([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1\n", "1 x 2\n", "x 1 2\n"} {
		if got, err := parseUsage([]byte(text)); err == nil {
			t.Errorf("%q: %v, expected an error", text, got)
		}
	}
}

func TestDelay(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		of   usage
		want time.Duration
	}{
		"an idle process": {usage{}, 0},
		"one that ran all the time on two processors":             {usage{ran: 1000 * ms}, 0},
		"one thread that waited":                                  {usage{ran: 50 * ms, waited: 200 * ms}, 200 * ms},
		"one thread that ran or waited all the time":              {usage{ran: 100 * ms, waited: 400 * ms}, 400 * ms},
		"threads that waited at the same time, and never ran":     {usage{waited: 2000 * ms}, 500 * ms},
		"two threads, each of which waited half of the time":      {usage{ran: 500 * ms, waited: 500 * ms}, 250 * ms},
		"two threads, of which each got a quarter of a processor": {usage{ran: 250 * ms, waited: 750 * ms}, 375 * ms},
	} {
		if got := c.of.delay(500 * ms); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestQueue: the first reading knows nothing yet, later ones no more than the time between them; what is gone waits for nothing.
func TestQueue(t *testing.T) {
	var q queue
	began := time.Now()
	if first, err := q.read(os.Getpid(), time.Hour); first != 0 || err != nil {
		t.Fatalf("the first reading: %v, %v", first, err)
	}
	if second, err := q.read(os.Getpid(), time.Since(began)); second < 0 || second > time.Since(began) || err != nil {
		t.Errorf("the second reading: %v, %v after %v", second, err, time.Since(began))
	}
	const nobody = 1 << 30
	if w, err := q.read(nobody, time.Hour); w != 0 || err != nil {
		t.Errorf("of nobody: %v, %v", w, err)
	}
}

// Threads that have waited longer than at the reading before have waited that much longer.
func TestQueueIsADifference(t *testing.T) {
	waits(t)
	q := queue{threads: map[string]usage{}}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		q.threads[e.Name()] = usage{waited: -time.Hour}
	}
	if w, err := q.read(os.Getpid(), 1000*time.Hour); err != nil || w < time.Hour {
		t.Errorf("%v, %v, want an hour at least", w, err)
	}
}

// waits are those of all threads of this process, so far.
func waits(t *testing.T) (all time.Duration) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/schedstat")
		if err != nil {
			continue // it has ended
		}
		u, err := parseUsage(text)
		if err != nil {
			t.Fatal(err)
		}
		all += u.waited
	}
	return all
}
