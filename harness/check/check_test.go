package check

import (
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// TestEveryInvariantCatches: each known-bad history fails its invariant, and none that is not a consequence.
func TestEveryInvariantCatches(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for _, k := range knownBad() {
		t.Run(k.String(), func(t *testing.T) {
			v := Run(k.build())
			caught := false
			for _, r := range v.Invariants {
				switch {
				case r.Status != Failed:
				case r.ID == k.id:
					caught = true
					complete(t, r)
				case !strings.Contains(" "+k.also+" ", " "+r.ID+" "):
					t.Errorf("%s fails too:\n%s", r.ID, printed(t, v))
				}
			}
			if !caught || v.OK {
				t.Errorf("%s does not catch it (ok %v):\n%s", k.id, v.OK, printed(t, v))
			}
		})
	}
}

// complete: a violation says what was seen, what was allowed and when.
func complete(t *testing.T, r Result) {
	t.Helper()
	if r.Count == 0 || len(r.Violations) == 0 || len(r.Violations) > MaxViolations {
		t.Fatalf("%s: %d violations kept of %d", r.ID, len(r.Violations), r.Count)
	}
	for _, x := range r.Violations {
		if x.Invariant != r.ID || x.Seen == "" || x.Allowed == "" {
			t.Errorf("incomplete violation %+v", x)
		}
	}
}

func TestEveryInvariantHasAKnownBad(t *testing.T) {
	bad := map[string]bool{}
	for _, k := range knownBad() {
		bad[k.id] = true
	}
	ids := strings.Fields(`NO-EXIT ACCEPTED FALSE-HEALTHY FALSE-ALARM DETECTION RECOVERY STALE-UNKNOWN ABSENCE-IS-NOT-BROKEN NO-ORPHAN NO-RESURRECTION
		OWNERSHIP MONOTONIC FRESH-ONLY CADENCE TRUTHFUL-PROBE FORMAT ROLLUP-TRUTH QUIET UNION CONVERGENCE UID NO-DATA-LOSS SWITCH-ORDER OPERATOR-CONVERGENCE ENCRYPTED CONDITION-ENDS AGREEMENT AGREEMENT-DEGRADED AGREEMENT-PRUNED LEAST-PRIVILEGE STREAM-TRUTH KEY-ID-STABLE NOTHING-SECRET NO-FORGED-EXCUSE NOTHING-RAN`)
	for i, inv := range Invariants() {
		if !bad[inv.ID] {
			t.Errorf("%s has no known-bad history", inv.ID)
		}
		if inv.ID != ids[i] || inv.Statement == "" || inv.Source == "" || inv.Judge == nil {
			t.Errorf("invariant %d is %+v, expected %s, complete", i, inv, ids[i])
		}
	}
}

func TestProblemsFailARun(t *testing.T) {
	edit := func(f func(e *history.Event)) []history.Event {
		events := faulty(nil, "error")
		for i := range events {
			f(&events[i])
		}
		return events
	}
	cases := map[string]struct {
		events []history.Event
		want   string
	}{
		"failed expectation": {edit(func(e *history.Event) {
			if e.Expectation != nil {
				e.Expectation.OK, e.Expectation.Detail = false, "was never true"
			}
		}), "expectation expect (holds true) failed at 35s: \"was never true\""},
		"failed action": {edit(func(e *history.Event) {
			if e.Action != nil && e.Action.ID == "wait" {
				e.Action.State, e.Action.Error = history.ActionFailed, "no such node"
			}
		}), "action wait (wait ) failed: \"no such node\""},
		"unfinished action": {edit(func(e *history.Event) {
			if e.Action != nil && e.Action.ID == "wait" {
				e.Action.State = history.ActionBegan
			}
		}), "began and never ended"},
		"incomplete": {edit(func(e *history.Event) {
			if e.End != nil {
				e.End.Complete, e.End.Problem = false, "audit log of cp-2 was cut"
			}
		}), "the history is incomplete: \"audit log of cp-2 was cut\""},
		"cut off":        {without(history.KindEnd)(), "no end event"},
		"no run":         {without(history.KindRun)(), "does not begin with a run event"},
		"unknown excuse": {excused("NO-SUCH", nil), "which is no invariant"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := Run(c.events)
			if v.OK || !strings.Contains(strings.Join(v.Problems, "\n"), c.want) || !strings.Contains(printed(t, v), "PROBLEM") {
				t.Errorf("ok %v, problems %q, want %q", v.OK, v.Problems, c.want)
			}
		})
	}
}

func excused(id string, change func(*world)) []history.Event {
	return faulty(func(w *world) {
		w.run.Excused = []history.Excuse{{Invariant: id, Reason: "on purpose"}}
		if change != nil {
			change(w)
		}
	}, "")
}

func TestExcuses(t *testing.T) {
	v := Run(excused("CADENCE", func(w *world) { w.bad.period = 3 * time.Second }))
	if !v.OK || statusOf(v, "CADENCE") != Excused {
		t.Errorf("an excused violation must not fail the run:\n%s", printed(t, v))
	}
	v = Run(excused("CADENCE", nil))
	if v.OK || statusOf(v, "CADENCE") != Failed || !strings.Contains(printed(t, v), "the excuse") {
		t.Errorf("a stale excuse must fail the run:\n%s", printed(t, v))
	}
}

func statusOf(v Verdict, id string) Status {
	for _, r := range v.Invariants {
		if r.ID == id {
			return r.Status
		}
	}
	return ""
}

func TestPrintIsBoundedAndNamesTheInstant(t *testing.T) {
	v := Run(knownBad()[0].build())
	text := printed(t, v)
	for _, want := range []string{"FALSE-HEALTHY", "seen:", "allowed:", "event ", "node cp-2", "reproduce: kmsharness run model.yaml"} {
		if !strings.Contains(text, want) {
			t.Errorf("output lacks %q:\n%s", want, text)
		}
	}
	v.Scenario, v.Reproduce, v.Notes = "a\x1b]0;b", "kmsharness\x1b[2J", []string{"\u202etxt"}
	if text := printed(t, v); strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("an escape sequence of the history reaches the terminal:\n%q", text)
	}
	for i := range v.Invariants {
		v.Invariants[i].Status, v.Invariants[i].Count = Failed, 1_000_000
		v.Invariants[i].Violations = make([]Violation, MaxViolations)
	}
	if n := len(printed(t, v)); n > 64<<10 {
		t.Errorf("%d bytes printed", n)
	}
}
