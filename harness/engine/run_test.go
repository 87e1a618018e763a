package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hang = "  - inject: {plugin: {node: cp-2}, fault: hang}\n"

func last(events []history.Event) *history.End { return events[len(events)-1].End }

func TestGoodRun(t *testing.T) {
	w := newWorld(t)
	events, err := w.run(context.Background(), "", hang+`  - expect: rollup.degraded.status == "True" && report["cp-2"]["1"].status == "error"
    within: detection
  - holds: report["cp-1"]["1"].status == "healthy"
    for: 3I
  - never: rollup.degraded.status == "Unknown"
    for: 1I
  - release: {plugin: {node: cp-2}}
  - expect: rollup.degraded.reason == "AsExpected"
    within: recovery
`)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "expectations", expectations(events), "before.expect ok 0s", "steps[1].expect ok 1s", "steps[2].holds ok 3s",
		"steps[3].never ok 1s", "steps[5].expect ok 1s", "after.expect ok 0s", "after.holds ok 2s")
	wantLines(t, "actions", w.actions, "0s inject cp-2 hang", "5s release cp-2", "6s release")
	if got := phases(events); got != "start before steps after end" {
		t.Errorf("phases %s", got)
	}
	if events[0].Run == nil || events[0].Run.Scenario != "test" || events[0].Run.Seed != 1 || events[0].Run.Schema != history.Schema {
		t.Errorf("heading %+v", events[0].Run)
	}
	if end := last(events); end == nil || !end.Complete {
		t.Errorf("end %+v", end)
	}
}

// An expectation that assumes the effect of a fault is judged only where that effect showed.
func TestGivenEffect(t *testing.T) {
	for given, want := range map[string]string{
		`report["cp-2"]["1"].status == "error"`: "steps[1].expect failed 3.6s",
		`report["cp-1"]["1"].status == "error"`: "steps[1].expect ok 3.6s", // not judged
		// It depends on time until it is true. What is expected does not.
		`!report["cp-1"]["1"].fresh || report["cp-2"]["1"].status == "error"`: "steps[1].expect failed 3.6s",
	} {
		w := newWorld(t)
		events, err := w.run(context.Background(), "", hang+"  - expect: rollup.degraded.status == \"Unknown\"\n    within: detection\n    given: '"+given+"'\n")
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(events, func(e history.Event) bool { return e.Expectation != nil && e.Expectation.ID == "steps[1].expect" })
		if got := expectations(events); !slices.Contains(got, want) || events[i].Expectation.NotJudged != events[i].Expectation.OK {
			t.Errorf("given %s: %q, expected %s: %+v", given, got, want, events[i].Expectation)
		}
	}
}

func TestFailedExpectationHealsAndEnds(t *testing.T) {
	w := newWorld(t)
	events, err := w.run(context.Background(), "", hang+`  - expect: report["cp-1"]["1"].status == "error"
    within: detection
  - kill: {role: reporter, node: cp-1}
`)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "expectations", expectations(events), "before.expect ok 0s", "steps[1].expect failed 3.6s")
	wantLines(t, "actions", w.actions, "0s inject cp-2 hang", "3.6s release")
	if got := phases(events); got != "start before steps end" {
		t.Errorf("phases %s", got)
	}
	for _, e := range events {
		if x := e.Expectation; x != nil && !x.OK && !strings.Contains(x.Detail, `report["cp-1"]["1"].status = "healthy"; rollup: Degraded True/PluginUnreachable`) {
			t.Errorf("detail %s", x.Detail)
		}
	}
}

// What was healthy before an outage says nothing after it.
func TestStaleHealthIsNotEnoughAfterwards(t *testing.T) {
	w := newWorld(t)
	w.in(8*time.Second, w.show) // the first report after the one of the beginning
	events, err := w.run(context.Background(), "", "  - wait: 6I\n")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "expectations", expectations(events), "before.expect ok 0s", "after.expect ok 2s", "after.holds ok 2s")
}

func TestExpectationModes(t *testing.T) {
	tests := []struct{ name, steps, want string }{
		{"within, too late", hang + "  - expect: rollup.degraded.status == \"True\"\n    within: 500ms\n", "steps[1].expect failed 500ms"},
		{"within, at the last moment", hang + "  - expect: rollup.degraded.status == \"True\"\n    within: 1s\n", "steps[1].expect ok 1s"},
		{"holds, not from the beginning", "  - holds: rollup.degraded.status == \"True\"\n    for: 1I\n", "steps[0].holds failed 0s"},
		{"holds, not to the end", hang + "  - holds: rollup.degraded.status == \"False\"\n    for: 2I\n", "steps[1].holds failed 1s"},
		{"never, at some time", hang + "  - never: rollup.degraded.status == \"True\"\n    for: 2I\n", "steps[1].never failed 1s"},
		{"never, of what is not there", "  - never: report[\"cp-1\"][\"1\"].kekID == conditions[\"X\"].reason\n    for: 2I\n", "steps[0].never ok 2s"},
		{"age, by the passing of time", "  - wait: 1I\n  - expect: report[\"cp-1\"][\"1\"].age > duration(\"2500ms\")\n    within: 3I\n", "steps[1].expect ok 1.6s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, err := newWorld(t).run(context.Background(), "", tt.steps)
			if err != nil {
				t.Fatal(err)
			}
			if got := expectations(events)[1]; got != tt.want {
				t.Errorf("got %s, expected %s", got, tt.want)
			}
		})
	}
}

func TestTransientStatesAreSeen(t *testing.T) {
	w := newWorld(t)
	w.react = func(a scenario.Action) error {
		if scenario.VerbOf(a) == "rotate" { // broken and whole again at the same instant
			w.broken["cp-1"] = true
			w.in(time.Second, func() { w.show(); w.broken["cp-1"] = false; w.show() })
		}
		return nil
	}
	events, err := w.run(context.Background(), "", "  - rotate: {}\n  - never: rollup.degraded.status == \"True\"\n    for: 2I\n")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "expectations", expectations(events), "before.expect ok 0s", "steps[1].never failed 1s")
}

func TestTimeline(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(context.Background(), "", `  - wait: 1s
  - rotate: {}
    at: 3s
  - parallel:
    - rotate: {}
      after: 2s
    - rotate: {}
      after: 1s
    - never: rollup.degraded.status == "True"
      for: 4s
  - repeat: {times: 2, steps: [{rotate: {}}, {wait: 500ms}]}
  - rotate: {}
    at: 1s
    after: 250ms
`)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "actions", w.actions, "3s rotate", "4s rotate", "5s rotate", "7s rotate", "7.5s rotate", "8.25s rotate")
	ids := []string{}
	for _, e := range w.log.Events() {
		if e.Action != nil && e.Action.State == history.ActionBegan {
			ids = append(ids, e.Action.ID)
		}
	}
	wantLines(t, "ids", ids, "steps[1]", "steps[2].parallel[1]", "steps[2].parallel[0]", "steps[3].repeat[0]#1", "steps[3].repeat[0]#2", "steps[4]")
}

func TestFailedAction(t *testing.T) {
	w := newWorld(t)
	w.react = func(a scenario.Action) error {
		if scenario.VerbOf(a) == "rotate" {
			return errors.New("remote KMS: connection refused")
		}
		return nil
	}
	events, err := w.run(context.Background(), "", hang+"  - rotate: {}\n  - kill: {role: reporter}\n")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "actions", w.actions, "0s inject cp-2 hang", "0s rotate", "0s release")
	failed := ""
	for _, e := range events {
		if e.Action != nil && e.Action.State == history.ActionFailed {
			failed = e.Action.ID + " " + e.Action.Error
		}
	}
	if failed != "steps[1] rotate : remote KMS: connection refused" && failed != "steps[1] rotate: remote KMS: connection refused" {
		t.Errorf("failed action %q", failed)
	}
}

// Each version of the KEK that was disabled is enabled again.
func TestHealingOfTwoKEKs(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run(context.Background(), "", "  - kms: {op: disable, kek: 1}\n  - kms: {op: disable, kek: 2}\n  - kms: {op: disable, kek: 2}\n"); err != nil {
		t.Fatal(err)
	}
	wantLines(t, "healing", w.actions[3:], "0s kms enable", "0s kms enable")
}

func TestHealing(t *testing.T) {
	w := newWorld(t)
	events, err := w.run(context.Background(), "", `  - kill: {role: reporter, node: cp-1}
  - pause: {role: plugin, node: cp-2, keyID: "1"}
  - silence: {role: reporter, node: cp-2}
  - stop: {role: plugin, node: cp-3, keyID: "1"}
  - stop: {role: reporter, node: cp-3}
  - link: {from: reporter, to: apiserver, node: cp-1, mode: cut}
  - link: {from: aggregator, to: load-balancer, mode: cut}
  - kms: {op: disable}
  - kms: {op: delete}
  - inject: {plugin: {node: all}, fault: hang}
  - node: {remove: cp-3}
`)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "healing", w.actions[11:], "0s resume plugin cp-2 1", "0s resume reporter cp-2",
		"0s link aggregator load-balancer restore", "0s link reporter apiserver cp-1 restore",
		"0s kms enable", "0s rotate", "0s release", "0s start reporter cp-1")
	if got := expectations(events); len(got) != 3 || got[1] != "after.expect ok 1s" {
		t.Errorf("expectations %q", got)
	}
}

// Nodes and pods come back before anything on them is told anything; nodes that lost their power come back together.
func TestHealingOfNodes(t *testing.T) {
	for name, c := range map[string]struct {
		steps string
		n     int
		want  []string
	}{
		"one":   {"  - kill: {role: node, node: cp-1}\n  - kill: {role: reporter, node: cp-2}\n", 2, []string{"0s start node cp-1", "0s start reporter cp-2"}},
		"two":   {"  - kill: {role: node, node: cp-1}\n  - kill: {role: node, node: cp-2}\n", 2, []string{"0s start node"}},
		"still": {"  - pause: {role: plugin, node: cp-1, keyID: \"1\"}\n  - pause: {role: node, node: cp-3}\n", 2, []string{"0s resume node cp-3", "0s resume plugin cp-1 1"}},
		"pod":   {"  - stop: {role: pod, node: cp-3}\n  - stop: {role: plugin, node: cp-1, keyID: \"1\"}\n", 2, []string{"0s start pod cp-3", "0s start plugin cp-1 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.run(context.Background(), "", c.steps); err != nil {
				t.Fatal(err)
			}
			wantLines(t, "healing", w.actions[c.n:], c.want...)
		})
	}
}

func TestHealingAfterColdStart(t *testing.T) {
	w := newWorld(t)
	events, err := w.run(context.Background(), "start: stopped, aggregators: 2", "  - wait: 1I\n  - start: {role: plugin, node: cp-1, keyID: \"1\"}\n  - start: {role: apiserver}\n")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "healing", w.actions[2:], "1s start plugin cp-2 1", "1s start plugin cp-3 1",
		"1s start reporter cp-1", "1s start reporter cp-2", "1s start reporter cp-3", "1s start aggregator 1", "1s start aggregator 2")
	if got := phases(events); got != "start steps after end" {
		t.Errorf("phases %s", got)
	}
}

func TestNodeAnyIsOneNodeBySeed(t *testing.T) {
	w := newWorld(t)
	events, err := w.run(context.Background(), "", `  - inject: {plugin: {node: any}, fault: hang, for: 3I}
  - expect: report[any]["1"].status == "error"
    within: detection
  - release: {plugin: {node: any}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := expectations(events)[1]; got != "steps[1].expect ok 1s" {
		t.Error(got)
	}
	inject, release := strings.Fields(w.actions[0]), strings.Fields(w.actions[1])
	if inject[2] != release[2] || !strings.HasPrefix(inject[2], "cp-") {
		t.Errorf("%q", w.actions)
	}
	for _, e := range events {
		if e.Action != nil && e.Action.Verb == "inject" && (e.Action.Params["for"] != "3s" || e.Action.Params["fault"] != "hang" || e.Action.Target != "plugin "+inject[2]+"/*") {
			t.Errorf("action %+v", e.Action)
		}
	}
}

func TestSickBeforeItBegins(t *testing.T) {
	w := newWorld(t)
	w.broken["cp-1"] = true
	events, err := w.run(context.Background(), "", "  - rotate: {}\n")
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "expectations", expectations(events), "before.expect failed 7.2s")
	wantLines(t, "actions", w.actions)
}

func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	w.in(2*time.Second, func() { cancel(errors.New("Ctrl-C")) })
	events, err := w.run(ctx, "", hang+"  - wait: 1m\n")
	if err == nil || !strings.Contains(err.Error(), "interrupted: Ctrl-C") {
		t.Errorf("error %v", err)
	}
	if end := last(events); end == nil || end.Complete || !strings.Contains(end.Problem, "Ctrl-C") {
		t.Errorf("end %+v", end)
	}
}

func TestIncompleteRecording(t *testing.T) {
	w := newWorld(t)
	w.finish = errors.New("audit log of cp-1: truncated")
	events, err := w.run(context.Background(), "", "  - wait: 1I\n")
	if err == nil || !strings.Contains(last(events).Problem, "truncated") {
		t.Errorf("error %v, end %+v", err, last(events))
	}
}

// A repetition with an end of its own is over after the round in which that came, and fails if it never comes.
func TestRepeatUntil(t *testing.T) {
	for until, c := range map[string]struct {
		rounds int
		detail string
	}{`rollup.degraded.status == "True"`: {rounds: 2}, `rollup.degraded.status == "Unknown"`: {rounds: 5, detail: "after 5 rounds: rollup.degraded.status = "}} {
		w := newWorld(t)
		events, err := w.run(context.Background(), "", hang+"  - repeat:\n      times: 5\n      until: "+until+"\n      steps: [{rotate: {}}, {wait: 600ms}]\n")
		if err != nil {
			t.Fatal(err)
		}
		rounds := 0
		for _, a := range w.actions {
			if strings.HasSuffix(a, "rotate") {
				rounds++
			}
		}
		i := slices.IndexFunc(events, func(e history.Event) bool { return e.Expectation != nil && e.Expectation.ID == "steps[1].repeat.until" })
		if rounds != c.rounds || i < 0 || events[i].Expectation.OK != (c.detail == "") || !strings.HasPrefix(events[i].Expectation.Detail, c.detail) {
			t.Errorf("until %s: %d rounds, expected %d; event %d", until, rounds, c.rounds, i)
		}
	}
}
