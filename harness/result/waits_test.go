package result_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
)

// eventsAt are events with an instant in seconds after the beginning.
func eventsAt(payloads map[int][]any) (events []history.Event) {
	for second := range 100 {
		for _, payload := range payloads[second] {
			e := history.Event{At: time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC).Add(time.Duration(second) * time.Second)}
			switch p := payload.(type) {
			case *history.Action:
				e.Action = p
			case *history.Expectation:
				e.Expectation = p
			case *history.Phase:
				e.Phase = p
			case *history.End:
				e.End = p
			}
			events = append(events, e)
		}
	}
	return events
}

func TestWaited(t *testing.T) {
	action := func(id, state string) *history.Action {
		return &history.Action{ID: id, Verb: "kill", Target: "process etcd", State: state}
	}
	expect := func(id, mode string, bound, took time.Duration) *history.Expectation {
		return &history.Expectation{ID: id, Mode: mode, Bound: bound * time.Second, Took: took * time.Second}
	}
	events := eventsAt(map[int][]any{
		10: {action("steps[0]", history.ActionBegan)},
		12: {action("steps[1]", history.ActionBegan), action("steps[9]", history.ActionDone)}, // [9] never began
		15: {action("steps[1]", history.ActionFailed)},
		17: {action("steps[0]", history.ActionDone)},
		30: {expect("steps[2].expect", "within", 30, 13), expect("steps[3].holds", "holds", 2, 2), expect("before.expect", "within", 4, 0)},
		31: {&history.Phase{Name: history.PhaseEnd}},
		35: {&history.End{Complete: true}},
	})
	var r result.Result
	r.Waited(6*time.Second, 3, events)
	want := []result.Wait{{For: "steps[2].expect within 30s", Took: 13 * time.Second}, {For: "steps[0] kill process etcd", Took: 7 * time.Second},
		{For: "preparation of 3 nodes", Took: 6 * time.Second}, {For: "end of the recording", Took: 4 * time.Second}, {For: "steps[1] kill process etcd", Took: 3 * time.Second}}
	if !slices.Equal(r.Waits, want) || r.Preparation != 6*time.Second {
		t.Errorf("preparation %v, waits\n%+v, want\n%+v", r.Preparation, r.Waits, want)
	}
	if r.Waited(time.Millisecond, 3, nil); len(r.Waits) > 0 {
		t.Errorf("a preparation that failed at once: %+v", r.Waits)
	}
	r.Waited(time.Second, 1, nil) // never came up
	if want := []result.Wait{{For: "preparation of 1 node", Took: time.Second}}; !slices.Equal(r.Waits, want) {
		t.Errorf("%+v, want %+v", r.Waits, want)
	}
}

// The longest of all scenarios are shown, whichever process ran them, and nothing where nothing was measured.
