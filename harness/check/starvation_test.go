package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

const milli = time.Millisecond

// starvedAt adds CPU starvation to a history, each from a time since its beginning, for a while.
func starvedAt(events []history.Event, role, node string, length time.Duration, from ...time.Duration) []history.Event {
	if len(events) == 0 {
		return events
	}
	out := slices.Clone(events)
	for _, d := range from {
		s := history.Starvation{Role: role, Node: node, From: events[0].At.Add(d), To: events[0].At.Add(d + length)}
		out = append(out, history.Event{Seq: int64(len(out) + 1), At: s.To, Kind: history.KindStarvation, Source: "test", Starvation: &s})
	}
	return out
}

// often is a list of instants, from the first second on.
func often(every time.Duration) (all []time.Duration) {
	for d := time.Second; d < 30*time.Second; d += every {
		all = append(all, d)
	}
	return all
}

// ranOutOfTime: at 12 s the reporter of cp-2 could not ask its plugin before the deadline.
func ranOutOfTime(detail string) []history.Event {
	return faulty(func(w *world) {
		now := func() bool { d := w.now.Sub(w.start); return d >= 12*sec && d < 13*sec }
		w.bad.entries = func(_ *world, node string, e []facts.WireEntry) []facts.WireEntry {
			if node == "cp-2" && now() {
				e[0].Status, e[0].KEKID, e[0].Detail = "error", "", detail
			}
			return e
		}
		w.bad.noProbe = func(node string) bool { return node == "cp-2" && now() }
	}, "")
}

// stoodStill: the reporter of cp-2 does nothing from 12 s on for so long that its report grows stale, and nobody paused it.
func stoodStill() []history.Event {
	return faulty(func(w *world) {
		w.at(12*sec, func(w *world) { w.rep["cp-2"].paused = true }).at(12*sec+5500*milli, func(w *world) { w.rep["cp-2"].paused = false })
	}, "")
}

const outOfTime = "DeadlineExceeded: context deadline exceeded while waiting for connections to become ready"

// lateAggregator does nothing for a while after a plugin failed, and nobody paused it.
func lateAggregator(idle time.Duration) []history.Event {
	return faulty(func(w *world) {
		w.at(10*sec, func(w *world) { w.agg.paused = true }).at(10*sec+idle, func(w *world) { w.agg.paused = false })
	}, "error")
}

// TestStarvedAndViolating: what is late is a failure without starvation, and with it neither a failure nor a pass.
func TestStarvedAndViolating(t *testing.T) {
	for name, c := range map[string]struct {
		events     []history.Event
		role, node string
		from, long time.Duration
		ids        string
	}{
		"a probe ran out of time": {ranOutOfTime(outOfTime), history.RoleHarness, "", 12*sec + 150*milli, 740 * milli, "TRUTHFUL-PROBE FALSE-ALARM"},
		"a report grows stale":    {stoodStill(), history.RoleHarness, "", 12*sec + 10*milli, 5400 * milli, "CADENCE FALSE-ALARM"},
		"a rollup is late":        {lateAggregator(2300 * milli), history.RoleAPIServer, "cp-3", 10*sec + 100*milli, 1900 * milli, "ROLLUP-TRUTH"},
		"it writes afterwards":    {lateAggregator(3300 * milli), history.RoleEtcd, "", 10*sec + 100*milli, 1900 * milli, "QUIET"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := Run(c.events); v.Outcome != RunFailed {
				t.Fatalf("it is no failure without starvation:\n%s", printed(t, v))
			}
			v := Run(starvedAt(c.events, c.role, c.node, c.long, c.from))
			output := printed(t, v)
			if v.OK || v.Outcome != RunInconclusive || v.Starvation != c.long || !strings.Contains(output, "CPU starvation: for "+text.Short(c.long)) {
				t.Errorf("%s", output)
			}
			for _, id := range strings.Fields(c.ids) {
				if statusOf(v, id) != Failed || !strings.Contains(output, "INCONCLUSIVE "+id) || !strings.Contains(output, "waited for a processor for "+text.Short(c.long)+" at +"+text.Short(c.from)) {
					t.Errorf("%s is not shown as inconclusive:\n%s", id, output)
				}
			}
		})
	}
}

// TestStarvationDoesNotExplain: mistakes beside starvation that does not explain them.
func TestStarvationDoesNotExplain(t *testing.T) {
	late := func() []history.Event { return lateAggregator(2300 * milli) }
	for name, c := range map[string]struct {
		events []history.Event
		id     string
	}{
		"content: an error of another kind": {starvedAt(ranOutOfTime("Unavailable: connection refused"), history.RoleHarness, "", 740*milli, 12*sec+150*milli), "TRUTHFUL-PROBE"},
		"content: an invented answer": {starvedAt(faulty(entriesAs(12*sec, 13*sec, func(_ *world, e *facts.WireEntry) { e.Status, e.Detail = "unhealthy", "deadline exceeded" }), ""),
			history.RoleHarness, "", 900*milli, 12*sec), "TRUTHFUL-PROBE"},
		"within the tolerance": {starvedAt(late(), history.RoleHarness, "", 190*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"out of reach, before": {starvedAt(late(), history.RoleHarness, "", 700*milli, 3*sec), "ROLLUP-TRUTH"},
		"out of reach, after":  {starvedAt(late(), history.RoleHarness, "", 700*milli, 20*sec), "ROLLUP-TRUTH"},
		"late twice, starved once": {starvedAt(faulty(func(w *world) {
			for _, at := range []time.Duration{10 * sec, 20 * sec} { // it neither detects nor recovers in time
				w.at(at, func(w *world) { w.agg.paused = true }).at(at+2300*milli, func(w *world) { w.agg.paused = false })
			}
		}, "error"), history.RoleHarness, "", 1900*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"a reporter's own":    {starvedAt(late(), history.RoleReporter, "cp-2", 1900*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"a plugin's own":      {starvedAt(late(), history.RolePlugin, "cp-2", 1900*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"an aggregator's own": {starvedAt(late(), history.RoleAggregator, "", 1900*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"an operator's own":   {starvedAt(late(), history.RoleOperator, "", 1900*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := Run(c.events); statusOf(v, c.id) != Failed || v.Outcome != RunFailed || len(v.Inconclusive) > 0 {
				t.Error(printed(t, v))
			}
		})
	}
}

// TestStarvationWithinTheToleranceExplainsNothing: a little starvation, all the time, hides nothing of what is known to be wrong.
func TestStarvationWithinTheToleranceExplainsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for _, k := range knownBad() {
		t.Run(k.String(), func(t *testing.T) {
			v := Run(starvedAt(k.build(), history.RoleHarness, "", 60*milli, often(3*sec)...))
			if statusOf(v, k.id) != Failed || v.Outcome != RunFailed {
				t.Error(printed(t, v))
			}
		})
	}
}

// TestStarvationChangesNoGoodHistory: a history in which everything holds passes, whatever was starved.
func TestStarvationChangesNoGoodHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for name, build := range fine() {
		t.Run(name, func(t *testing.T) {
			v := Run(starvedAt(build(), history.RoleHarness, "", 300*milli, often(sec)...))
			if !v.OK || v.Starvation == 0 {
				t.Error(printed(t, v))
			}
		})
	}
}

// unmet is a good history but for its expectation, which failed after a while.
func unmet(took time.Duration) []history.Event {
	events := faulty(nil, "error")
	for i := range events {
		if x := events[i].Expectation; x != nil {
			failed := *x
			failed.OK, failed.Detail, failed.Took = false, "was never true", took
			events[i].Expectation = &failed
		}
	}
	return events
}

// TestAStarvedExpectationIsInconclusive: a failed expectation is not met, and starvation beyond the tolerance explains that.
func TestAStarvedExpectationIsInconclusive(t *testing.T) {
	for name, events := range map[string][]history.Event{
		"the harness":  starvedAt(unmet(2*sec), history.RoleHarness, "", 740*milli, 34*sec),
		"an apiserver": starvedAt(unmet(20*sec), history.RoleAPIServer, "cp-2", 400*milli, 33*sec, 34*sec),
	} {
		if v := Run(events); v.Outcome != RunInconclusive || v.OK || len(v.Inconclusive) != 1 || !strings.HasPrefix(v.Inconclusive[0], "expect") {
			t.Errorf("%s: %s", name, printed(t, v))
		}
	}
	wrong := func() []history.Event {
		events := starvedAt(unmet(2*sec), history.RoleHarness, "", 740*milli, 34*sec)
		return append(events, history.Event{At: events[0].At.Add(12 * sec), Kind: history.KindObject, Source: "watch", Object: &history.Object{
			Resource: "clusteroperators.config.openshift.io", Name: "kube-apiserver", ResourceVersion: "x", Conditions: []*history.Condition{{Type: contract.ConditionType("cp-1"), Status: "True"}}}})
	}
	for name, events := range map[string][]history.Event{
		"within the tolerance":   starvedAt(unmet(2*sec), history.RoleHarness, "", 190*milli, 34*sec),
		"long before":            starvedAt(unmet(20*sec), history.RoleHarness, "", 740*milli, 20*sec),
		"and something is wrong": wrong(),
	} {
		if v := Run(events); v.Outcome != RunFailed || v.OK || len(v.Inconclusive) > 0 {
			t.Errorf("%s: %s", name, printed(t, v))
		}
	}
}

// gaveUp is a good history but for its first action, which failed after a while.
func gaveUp(took time.Duration) []history.Event {
	events := faulty(nil, "error")
	first := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.KindAction })
	began, failed := *events[first].Action, *events[first].Action
	began.State, failed.State, failed.Error = history.ActionBegan, history.ActionFailed, "context deadline exceeded"
	events[first].Action = &failed
	return slices.Insert(events, first, history.Event{At: events[first].At.Add(-took), Kind: history.KindAction, Source: events[first].Source, Action: &began})
}

// TestAStarvedActionIsInconclusive: an action that ran for long and failed is not done, and starvation beyond the tolerance explains that.
func TestAStarvedActionIsInconclusive(t *testing.T) {
	slow := 5 * sec
	if v := Run(starvedAt(gaveUp(slow), history.RoleAPIServer, "cp-2", 900*milli, often(sec)...)); v.Outcome != RunInconclusive || len(v.Inconclusive) == 0 {
		t.Error(printed(t, v))
	}
	for name, events := range map[string][]history.Event{
		"no starvation":   gaveUp(slow),
		"refused at once": starvedAt(gaveUp(100*milli), history.RoleAPIServer, "cp-2", 900*milli, often(sec)...),
	} {
		if v := Run(events); v.Outcome != RunFailed || len(v.Problems) == 0 {
			t.Errorf("%s: %s", name, printed(t, v))
		}
	}
}

// TestWhatAStarvedExpectationLeftUndone: a scenario that did not get beyond it has done nothing, which is no failure of its own.
func TestWhatAStarvedExpectationLeftUndone(t *testing.T) {
	events := slices.DeleteFunc(unmet(2*sec), func(e history.Event) bool { return e.Kind == history.KindAction })
	if v := Run(events); statusOf(v, "NOTHING-RAN") != Failed || v.Outcome != RunFailed {
		t.Error(printed(t, v))
	}
	if v := Run(starvedAt(events, history.RoleHarness, "", 740*milli, 34*sec)); statusOf(v, "NOTHING-RAN") != Failed || v.Outcome != RunInconclusive {
		t.Error(printed(t, v))
	}
}

// TestNoViolationTurnsIntoAPass: however a machine starves what runs on it, what is known to be wrong is a failure or inconclusive, and inconclusive
// only where it is a matter of time.
func TestNoViolationTurnsIntoAPass(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for name, starve := range map[string]func([]history.Event) []history.Event{
		"no time": func(e []history.Event) []history.Event {
			return starvedAt(e, history.RoleHarness, "", 900*milli, often(sec)...)
		},
		"all waits": func(e []history.Event) []history.Event {
			return starvedAt(e, history.RoleEtcd, "", 500*milli, often(500*milli)...)
		},
	} {
		for _, k := range knownBad() {
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				v := Run(starve(k.build()))
				if v.OK || statusOf(v, k.id) != Failed || v.Outcome == RunInconclusive && invariant(k.id).Timed == NoneTimed && k.id != "NOTHING-RAN" {
					t.Error(printed(t, v))
				}
			})
		}
	}
}

func invariant(id string) Invariant {
	all := Invariants()
	return all[slices.IndexFunc(all, func(i Invariant) bool { return i.ID == id })]
}

// TestLaterThanStarvationCauses: a violation is not explained by starvation that is much shorter than its delay.
func TestLaterThanStarvationCauses(t *testing.T) {
	v := facts.New(starvedAt(faulty(nil, ""), history.RoleHarness, "", 900*milli, 12*sec))
	due := v.Period.From.Add(13 * sec)
	for late, explained := range map[time.Duration]bool{0: true, 900 * milli: true, 4 * sec: false} {
		f := Finding{Count: 1, Violations: []Violation{{At: due.Add(late), To: due}}}
		if why := newStarvation(v).explainsAll(invariant("FRESH-ONLY"), f); (why != "") != explained {
			t.Errorf("%v late: %q", late, why)
		}
	}
}
