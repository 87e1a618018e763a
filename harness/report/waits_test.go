package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report"
)

// eventsAt are events with an instant in seconds after the beginning.
func eventsAt(payloads map[int][]any) (events []history.Event) {
	for second := range 100 {
		for _, payload := range payloads[second] {
			e := history.Event{At: instant().Add(time.Duration(second) * time.Second)}
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
	var r report.Result
	r.Waited(6*time.Second, 3, events)
	want := []report.Wait{{For: "steps[2].expect within 30s", Took: 13 * time.Second}, {For: "steps[0] kill process etcd", Took: 7 * time.Second},
		{For: "preparation of 3 nodes", Took: 6 * time.Second}, {For: "end of the recording", Took: 4 * time.Second}, {For: "steps[1] kill process etcd", Took: 3 * time.Second}}
	if !slices.Equal(r.Waits, want) || r.Preparation != 6*time.Second {
		t.Errorf("preparation %v, waits\n%+v, want\n%+v", r.Preparation, r.Waits, want)
	}
	if r.Waited(time.Millisecond, 3, nil); len(r.Waits) > 0 {
		t.Errorf("a preparation that failed at once: %+v", r.Waits)
	}
	r.Waited(time.Second, 1, nil) // never came up
	if want := []report.Wait{{For: "preparation of 1 node", Took: time.Second}}; !slices.Equal(r.Waits, want) {
		t.Errorf("%+v, want %+v", r.Waits, want)
	}
}

// The longest of all scenarios are shown, whichever process ran them, and nothing where nothing was measured.
func TestWaitsText(t *testing.T) {
	s := summary(report.Passed, report.Failed, report.NotSupported)
	if text := s.WaitsText(); text != "" {
		t.Errorf("without waits: %q", text)
	}
	var silent strings.Builder
	if err := s.WriteText(&silent); err != nil || strings.Contains(silent.String(), "waited") {
		t.Errorf("%v\n%s", err, silent.String())
	}
	s.Results[0].Waited(2*time.Second, 3, nil)
	if text := s.WaitsText(); text != "waited longest for: preparation of 3 nodes 2s (a)\npreparation: 2s of 12.3s" {
		t.Error(text)
	}
	s.Results[1].Waited(9*time.Second, 1, nil)
	for i := range 6 {
		s.Results[1].Waits = append(s.Results[1].Waits, report.Wait{For: "steps\x1b[0]", Took: time.Duration(10+i) * time.Second})
	}
	dir := t.TempDir()
	for _, r := range s.Results {
		if err := r.Save(dir + "/" + r.Scenario); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := report.Collect(dir, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := merged.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(text.String(), "\nwaited longest for: ")
	longest, rest, _ := strings.Cut(block, "\n")
	if strings.Count(longest, ";") != 4 || !strings.HasSuffix(longest, "11s (b)") || strings.ContainsRune(block, 0x1b) ||
		!strings.HasPrefix(rest, "preparation: 11s of 24.7s, added up over 2 scenarios, which may run side by side\n\ne2e: ") {
		t.Error(text.String())
	}
	if !strings.Contains(merged.Markdown(""), "\nwaited longest for: ") {
		t.Error(merged.Markdown(""))
	}
}
