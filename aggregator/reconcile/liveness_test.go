package reconcile

import (
	"testing"
	"time"
)

// What needs etcd and was answered puts the next probe off, and nothing else does.
func TestAnswersFromEtcdPutTheNextProbeOff(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		fromEtcd bool
		code     int
		counts   bool
	}{
		"a write":                    {true, 200, true},
		"a conflict":                 {true, 409, true},
		"a list, perhaps of a cache": {false, 200, false},
		"a write that failed":        {true, 504, false},
	} {
		l := Liveness{Interval: 12 * time.Second}
		l.Observe(at, c.fromEtcd, c.code)
		if got := l.Due(at.Add(time.Second)) == time.Second; got != c.counts {
			t.Errorf("%s: the next probe is due in %v, expected that it counts: %v", name, l.Due(at.Add(time.Second)), c.counts)
		}
	}
}

// A refusal is an answer: a client that is not allowed to read still has an API server.
func TestAlive(t *testing.T) {
	at := time.Unix(1000, 0)
	for code, want := range map[int]bool{0: false, 200: true, 403: true, 404: true, 429: true, 500: false, 503: false, 504: false} {
		l := Liveness{Interval: time.Second}
		if got := l.Alive(at, code); got != want {
			t.Errorf("status %d: alive is %v, expected %v", code, got, want)
		}
	}
	throttled := Liveness{Interval: time.Second}
	throttled.Observe(at, true, 429)
	if !throttled.Alive(at, 0) || throttled.Alive(at.Add(time.Second), 0) {
		t.Error("429 must count as the answer of a probe that was under way, and of no later one")
	}
}

// The shortest period and the time-out stay below what a failed read of a pass takes: the probe is there to be sooner.
func TestPeriodOfProbes(t *testing.T) {
	if probeMin+ProbeTimeout >= RequestTimeout || ProbeTimeout < 2*time.Second {
		t.Errorf("period %v and time-out %v, expected their sum below %v and time for an election", probeMin, ProbeTimeout, RequestTimeout)
	}
	for interval, want := range map[time.Duration]time.Duration{time.Second: time.Second, 12 * time.Second: 2 * time.Second, 30 * time.Second: 5 * time.Second, time.Hour: 5 * time.Second} {
		l := Liveness{Interval: interval}
		if got, redial := l.Probed(true); got != want || redial {
			t.Errorf("interval %v: every %v (redial: %v), expected %v", interval, got, redial, want)
		}
	}
}

// A client that gets nothing but errors backs off: each redial costs the API server a list and a watch for every cache.
func TestRedialsBackOff(t *testing.T) {
	l := Liveness{Interval: time.Second}
	for _, want := range []time.Duration{100, 200, 400, 400} {
		if wait, redial := l.Probed(false); wait != want*time.Millisecond || !redial {
			t.Errorf("waits %v (redial: %v), expected %v", wait, redial, want*time.Millisecond)
		}
	}
	l.Probed(true)
	if wait, _ := l.Probed(false); wait != redialMin {
		t.Errorf("waits %v after an answer, expected %v", wait, redialMin)
	}
}
