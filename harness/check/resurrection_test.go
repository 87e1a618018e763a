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

// An operator that still needs reports although KMS is off keeps its reporters. What is removed once it is stale comes back then; what is
// fresh nobody may take away again and again, and without an operator nobody needs it.
func TestReportersThatAnOperatorNeedsMayGoOn(t *testing.T) {
	off := func(fight bool) func() []history.Event {
		return func() []history.Event {
			w := newWorld(3, "1")
			w.bad.fight, w.bad.period = fight, 600*time.Millisecond
			w.at(10*time.Second, func(w *world) { w.active = false; w.expect() })
			for at := 14 * time.Second; at < 40*time.Second; at += 13 * time.Second {
				w.at(at, func(w *world) { w.pauseReporter("cp-3", true) })
				w.at(at+10*time.Second, func(w *world) { w.pauseReporter("cp-3", false) })
			}
			w.boot()
			return w.finish(55 * time.Second)
		}
	}
	for name, x := range map[string]struct {
		history  func() []history.Event
		violated bool
	}{
		"nobody needs them":       {off(false), true},
		"an operator needs them":  {operated(off(false)), false},
		"they are fought against": {operated(off(true)), true},
	} {
		if _, violated := failedIDs(Run(x.history()))["NO-RESURRECTION"]; violated != x.violated {
			t.Errorf("%s: violated %v, expected %v", name, violated, x.violated)
		}
	}
}

// TestOneWriteAtTheEnd: the write that was under way when a reporter was asked to end may arrive.
func TestOneWriteAtTheEnd(t *testing.T) {
	for _, r := range Run(plain(lastWords(1, history.ProcessStopped))()).Invariants {
		if r.ID == "NO-RESURRECTION" && r.Status != Passed {
			t.Errorf("%+v", r)
		}
	}
}

// TestKilledIsNotAskedToEnd: a reporter that is killed in a restart, and stopped much later, was not asked to end meanwhile.
func TestKilledIsNotAskedToEnd(t *testing.T) {
	restart := func(w *world, state string) {
		w.record("engine", &history.Action{ID: "restart", Verb: "restart", Target: "process reporter/cp-2", Params: map[string]any{"with": "kill"}, State: state})
	}
	events := plain(func(w *world) {
		w.at(10*sec, func(w *world) { restart(w, history.ActionBegan) })
		w.at(11*sec, func(w *world) {
			w.process(history.RoleReporter, "cp-2", "", history.ProcessKilled)
			w.startReporter("cp-2")
			restart(w, history.ActionDone)
		})
		w.at(25*sec, func(w *world) { w.stopReporter("cp-2") })
	})()
	for _, r := range Run(events).Invariants {
		if r.ID == "NO-RESURRECTION" && r.Count > 0 {
			t.Errorf("%+v", r.Violations)
		}
	}
}
