package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// What an aggregator removes while its clock or the reporter's is wrong may come back: by the one clock the reporter had long stopped.
// With right ones that is a fight.
func TestWrongClockExcusesRemovals(t *testing.T) {
	for clock, want := range map[history.Clock]bool{
		{Role: history.RoleAggregator}:                     true,
		{Role: history.RoleAggregator, Ahead: time.Minute}: false,
		{Node: "cp-3", Ahead: -time.Minute}:                false,
		{Node: "cp-1", Ahead: -time.Minute}:                true, // another's
	} {
		events := lateReporter(func(w *world) {
			w.bad.fight = true
			w.bad.period = 600 * time.Millisecond
			w.at(9*sec, func(w *world) { w.record("backend", &clock) })
			w.at(14*sec, func(*world) {})
		})
		if _, violated := failedIDs(Run(events))["NO-RESURRECTION"]; violated != want {
			t.Errorf("%+v: violated %v, expected %v", clock, violated, want)
		}
	}
}
