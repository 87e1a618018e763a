package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// exits: the reporter of cp-2 ends by itself at 12 s; back is how much later it is started again, 0: never.
func exits(back time.Duration) []history.Event {
	return faulty(func(w *world) {
		w.at(12*sec, func(w *world) {
			w.rep["cp-2"].running = false
			w.record("backend", &history.Process{Role: history.RoleReporter, Node: "cp-2", State: history.ProcessExited, Detail: "exit code 3", Output: "usage\nno flag --nodes\n"})
		})
		if back > 0 {
			w.at(12*sec+back, func(w *world) { w.startReporter("cp-2") })
		}
	}, "")
}

// A reporter that ends by itself is a failure with its exit code and its last lines, and a starved machine does not explain it. One that is
// restarted in time is a note.
func TestAProcessThatEndsByItself(t *testing.T) {
	for name, events := range map[string][]history.Event{
		"on a quiet machine":   exits(0),
		"on a starved machine": starvedAt(exits(0), history.RoleHarness, "", 900*milli, often(sec)...),
	} {
		v := Run(events)
		if statusOf(v, NoExitID) != Failed || v.Failing[0].ID != NoExitID || v.Outcome != RunFailed || !strings.Contains(printed(t, v), "reporter/cp-2 ended by itself: exit code 3; the end of its output: usage no flag --nodes") {
			t.Errorf("%s: %s", name, printed(t, v))
		}
	}
	events := exits(2 * sec)
	action := history.Event{At: events[0].At.Add(13 * time.Second), Kind: history.KindAction, Source: "engine", Action: &history.Action{ID: "heal[0]", Verb: "start", Target: "process reporter/cp-2", State: history.ActionBegan}}
	done := action
	ended := *action.Action
	ended.State = history.ActionDone
	done.At, done.Action = action.At.Add(2*time.Second), &ended
	events = append(events, action, done)
	slices.SortStableFunc(events, func(a, b history.Event) int { return a.At.Compare(b.At) })
	if v := Run(events); statusOf(v, NoExitID) != Failed || v.Failing[0].ID != NoExitID {
		t.Errorf("started by an action: %s", printed(t, v))
	}
	if v := Run(exits(200 * milli)); statusOf(v, NoExitID) != Passed || len(v.Notes) == 0 {
		t.Error(printed(t, v))
	}
}
