package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Two reporters of one node, one of which is about to end, write twice as often, and the older of two probes may be written last. One reporter may not.
func TestReporterAndItsSuccessor(t *testing.T) {
	twice := func(successor bool, back time.Duration) []history.Event {
		w := newWorld(1, "1")
		tell := func(w *world, pid int, state string) {
			if successor {
				w.record("backend", &history.Process{Role: history.RoleReporter, Node: "cp-1", PID: pid, State: state})
			}
		}
		w.at(8*sec, func(w *world) { tell(w, 1, history.ProcessStarted); tell(w, 1, history.ProcessReady) })
		w.at(12*sec, func(w *world) {
			tell(w, 2, history.ProcessStarted)
			tell(w, 2, history.ProcessReady)
			w.bad.period = 400 * time.Millisecond
		})
		w.at(22*sec, func(w *world) {
			tell(w, 1, history.ProcessStopped)
			w.bad.period = sec
		})
		w.bad.entries = func(w *world, _ string, all []facts.WireEntry) []facts.WireEntry {
			if back > 0 && w.now.Sub(w.start) > 17*sec && w.now.Sub(w.start) < 18*sec {
				all[0].LastChecked = contract.FormatTime(w.now.Add(-back))
			}
			return all
		}
		w.boot()
		return w.finish(30 * sec)
	}
	for name, tt := range map[string]struct {
		events  []history.Event
		id      string
		allowed bool
	}{
		"two write twice as often":             {twice(true, 0), "CADENCE", true},
		"one writes twice as often":            {twice(false, 0), "CADENCE", false},
		"two, the older probe last":            {twice(true, 900*time.Millisecond), "MONOTONIC", true},
		"one, the older probe last":            {twice(false, 900*time.Millisecond), "MONOTONIC", false},
		"two, and one holds back for too long": {twice(true, 8*sec), "MONOTONIC", false},
	} {
		if _, violated := failedIDs(Run(tt.events))[tt.id]; violated == tt.allowed {
			t.Errorf("%s: %s violated %v", name, tt.id, violated)
		}
	}
}
