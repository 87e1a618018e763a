package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// What an aggregator removes while its clock is wrong may come back: by that clock the reporter had long stopped. With a right one that
// is a fight.
func TestWrongClockExcusesRemovals(t *testing.T) {
	for ahead, want := range map[time.Duration]bool{0: true, time.Minute: false} {
		events := lateReporter(func(w *world) {
			w.bad.fight = true
			w.bad.period = 600 * time.Millisecond
			w.at(9*sec, func(w *world) { w.record("backend", &history.Clock{Role: history.RoleAggregator, Ahead: ahead}) })
			w.at(14*sec, func(*world) {})
		})
		if _, violated := failedIDs(Run(events))["NO-RESURRECTION"]; violated != want {
			t.Errorf("clock ahead by %v: violated %v, expected %v", ahead, violated, want)
		}
	}
}
