package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
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
		w.bad.entries = func(_ *world, node string, e []wire) []wire {
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

// explainedIn is how many violations of an invariant CPU starvation explains.
func explainedIn(v Verdict, id string) int {
	for _, r := range v.Invariants {
		if r.ID == id {
			return r.StarvedCount
		}
	}
	return 0
}

// TestStarvationIsNoVerdict: what starvation explains is a failure without it, and with it neither a failure nor a pass.
func TestStarvationIsNoVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		events     []history.Event
		role, node string
		from, long time.Duration
		ids        string
	}{
		"a probe ran out of time":   {ranOutOfTime(outOfTime), history.RoleReporter, "cp-2", 12*sec + 150*milli, 740 * milli, "TRUTHFUL-PROBE FALSE-ALARM"},
		"… on the whole machine":    {ranOutOfTime(outOfTime), history.RoleHarness, "", 12*sec + 150*milli, 740 * milli, "TRUTHFUL-PROBE FALSE-ALARM"},
		"a report grows stale":      {stoodStill(), history.RoleHarness, "", 12*sec + 10*milli, 5400 * milli, "CADENCE FALSE-ALARM"},
		"a rollup is late":          {lateAggregator(2300 * milli), history.RoleAggregator, "", 10*sec + 100*milli, 1900 * milli, "ROLLUP-TRUTH"},
		"it writes after the stall": {lateAggregator(3300 * milli), history.RoleAggregator, "", 10*sec + 100*milli, 1900 * milli, "QUIET"},
		"… its API server":          {lateAggregator(2300 * milli), history.RoleAPIServer, "cp-3", 10*sec + 100*milli, 1900 * milli, "ROLLUP-TRUTH"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := Run(c.events); v.Outcome != RunFailed {
				t.Fatalf("it is no failure without starvation:\n%s", printed(t, v))
			}
			v := Run(starvedAt(c.events, c.role, c.node, c.long, c.from))
			text := printed(t, v)
			if v.OK || v.Outcome != RunInconclusive || len(v.Inconclusive) == 0 || v.Starvation.Count != 1 || v.Starvation.Longest != c.long || !strings.Contains(text, "CPU starvation: 1 times no processor time, for "+short(c.long)) {
				t.Errorf("%s", text)
			}
			for _, id := range strings.Fields(c.ids) {
				if explainedIn(v, id) == 0 || statusOf(v, id) != Inconclusive || !strings.Contains(text, "INCONCLUSIVE "+id) || !strings.Contains(text, "no processor time for "+short(c.long)+" at +"+short(c.from)) {
					t.Errorf("%s is not shown as inconclusive:\n%s", id, text)
				}
			}
		})
	}
}

// TestStarvationDoesNotExplain: mistakes near to starvation that does not explain them.
func TestStarvationDoesNotExplain(t *testing.T) {
	for name, c := range map[string]struct {
		events []history.Event
		id     string
	}{
		"an error of another kind": {starvedAt(ranOutOfTime("Unavailable: connection refused"), history.RoleReporter, "cp-2", 740*milli, 12*sec+150*milli), "TRUTHFUL-PROBE"},
		"too short for a deadline": {starvedAt(ranOutOfTime(outOfTime), history.RoleReporter, "cp-2", 200*milli, 12*sec+150*milli), "TRUTHFUL-PROBE"},
		"on another node":          {starvedAt(ranOutOfTime(outOfTime), history.RoleReporter, "cp-1", 740*milli, 12*sec+150*milli), "TRUTHFUL-PROBE"},
		"of an operator":           {starvedAt(stoodStill(), history.RoleOperator, "", 5400*milli, 12*sec+10*milli), "FALSE-ALARM"},
		"at another time":          {starvedAt(ranOutOfTime(outOfTime), history.RoleReporter, "cp-2", 740*milli, 15*sec), "TRUTHFUL-PROBE"},
		"an invented answer": {starvedAt(faulty(entriesAs(12*sec, 13*sec, func(_ *world, e *wire) { e.Status, e.Detail = "unhealthy", "deadline exceeded" }), ""),
			history.RoleHarness, "", 900*milli, 12*sec), "TRUTHFUL-PROBE"},
		"a report grows stale after the stall": {starvedAt(stoodStill(), history.RoleHarness, "", 600*milli, 7*sec), "FALSE-ALARM"},
		"later than the stall explains":        {starvedAt(lateAggregator(3500*milli), history.RoleAggregator, "", 700*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"late, with stalls elsewhere":          {starvedAt(lateAggregator(2300*milli), history.RoleAggregator, "", 700*milli, 5*sec, 20*sec), "ROLLUP-TRUTH"},
		"late twice, stalled once": {starvedAt(faulty(func(w *world) {
			for _, at := range []time.Duration{10 * sec, 20 * sec} { // it neither detects nor recovers in time
				w.at(at, func(w *world) { w.agg.paused = true }).at(at+2300*milli, func(w *world) { w.agg.paused = false })
			}
		}, "error"), history.RoleAggregator, "", 1900*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"never True": {starvedAt(faulty(degradedAs(value{"False", "AsExpected"}, isTrue), "error"), history.RoleHarness, "", 400*milli, 11*sec, 14*sec), "FALSE-HEALTHY"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := Run(c.events); statusOf(v, c.id) != Failed || v.Outcome != RunFailed {
				t.Error(printed(t, v))
			}
		})
	}
}

// TestStaleByItsClock: an aggregator reads the reports, gets no processor time for so long that they are stale by its clock, and decides on what it read.
func TestStaleByItsClock(t *testing.T) {
	events := faulty(func(w *world) {
		w.at(10*sec, func(w *world) { w.agg.paused = true }).at(18*sec+400*milli, func(w *world) { w.agg.paused = false })
		w.bad.table = func(w *world, t map[string]value, message *string) {
			if d := w.now.Sub(w.start); d > 18*sec && d < 18*sec+700*milli {
				t[contract.ConditionDegraded], *message = value{"Unknown", "ReportStale"}, "cp-1/1, cp-2/1, cp-3/1: report is stale"
			}
		}
	}, "")
	for outcome, all := range map[Outcome][]history.Event{
		RunFailed:       starvedAt(events, history.RoleAggregator, "", 700*milli, 10*sec),
		RunInconclusive: starvedAt(events, history.RoleEtcd, "", 14*sec, 10*sec),
	} {
		if v := Run(all); v.Outcome != outcome || statusOf(v, "ROLLUP-TRUTH") == Passed {
			t.Errorf("expected %s:\n%s", outcome, printed(t, v))
		}
	}
}

// TestStarvationWithinTheToleranceExplainsNothing: a little starvation, all the time, hides nothing of what is known to be wrong.
func TestStarvationWithinTheToleranceExplainsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for _, k := range knownBad() {
		t.Run(k.String(), func(t *testing.T) {
			v := Run(starvedAt(k.build(), history.RoleHarness, "", 160*milli, often(3*sec)...))
			if k.name == thirdLeftOut && v.Outcome == RunInconclusive {
				return // a rate over several writes adds up what each was late by
			}
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
			if !v.OK || v.Starvation.Total == 0 {
				t.Error(printed(t, v))
			}
			for _, r := range v.Invariants {
				if r.StarvedCount > 0 {
					t.Errorf("%s: %d starved of nothing", r.ID, r.StarvedCount)
				}
			}
		})
	}
}

// TestAFrozenNodeIsNoBusyMachine: what stands still because it was told to excuses nothing, whoever tells of the freezing.
func TestAFrozenNodeIsNoBusyMachine(t *testing.T) {
	for name, tell := range map[string]func(w *world, paused bool){
		"node":     func(w *world, paused bool) { w.process(history.RoleNode, "cp-2", "", frozenState(paused)) },
		"etcd":     func(w *world, paused bool) { w.process(history.RoleEtcd, "cp-2", "", frozenState(paused)) },
		"the unit": func(*world, bool) {}, // pauseReporter tells of it
		"container": func(w *world, paused bool) {
			w.record("engine", &history.Container{Node: "cp-2", Name: "node", State: map[bool]string{true: "paused", false: "unpaused"}[paused]})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3, "1")
			w.at(10*sec, func(w *world) { w.pauseReporter("cp-2", true); tell(w, true) }).at(17*sec, func(w *world) { w.pauseReporter("cp-2", false); tell(w, false) })
			degradedAs(value{"False", "AsExpected"}, after(9*sec))(w)
			w.boot()
			events := w.finish(30 * sec)
			roles := []string{history.RoleReporter}
			if name != "the unit" {
				roles = append(roles, history.RolePlugin)
			}
			for _, role := range roles {
				v := Run(starvedAt(events, role, "cp-2", 7*sec+100*milli, 9950*milli))
				if statusOf(v, "STALE-UNKNOWN") != Failed || v.Starvation.Count != 0 || v.OK {
					t.Errorf("%s: %s", role, printed(t, v))
				}
			}
		})
	}
}

func frozenState(paused bool) string {
	return map[bool]string{true: history.ProcessPaused, false: history.ProcessResumed}[paused]
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

// queued makes what was starved wait for a processor now and then.
func queued(events []history.Event) []history.Event {
	for i := range events {
		if events[i].Starvation != nil {
			events[i].Starvation.Queued = true
		}
	}
	return events
}

// TestAStarvedExpectationIsInconclusive: a failed expectation is not met, and starvation beyond the tolerance explains that, whoever was starved.
func TestAStarvedExpectationIsInconclusive(t *testing.T) {
	for name, events := range map[string][]history.Event{
		"no time":              starvedAt(unmet(2*sec), history.RoleHarness, "", 740*milli, 34*sec),
		"waits":                queued(starvedAt(unmet(2*sec), history.RoleReporter, "cp-2", 400*milli, 33*sec, 34*sec)),
		"waits in a long wait": queued(starvedAt(unmet(20*sec), history.RoleAPIServer, "cp-2", 400*milli, often(sec)...)),
	} {
		if v := Run(events); v.Outcome != RunInconclusive || v.OK || len(v.Problems) > 0 || len(v.Inconclusive) != 1 || !strings.Contains(v.Inconclusive[0], "expectation expect") {
			t.Errorf("%s: %s", name, printed(t, v))
		}
	}
	wrong := func() []history.Event {
		events := starvedAt(unmet(2*sec), history.RoleHarness, "", 740*milli, 34*sec)
		return append(events, history.Event{At: events[0].At.Add(12 * sec), Kind: history.KindObject, Source: "watch", Object: &history.Object{
			Resource: "clusteroperators.config.openshift.io", Name: "kube-apiserver", ResourceVersion: "x", Conditions: []history.Condition{{Type: contract.ConditionType("cp-1"), Status: "True"}}}})
	}
	for name, events := range map[string][]history.Event{
		"within the tolerance":   starvedAt(unmet(2*sec), history.RoleHarness, "", 190*milli, 34*sec),
		"long before":            starvedAt(unmet(2*sec), history.RoleHarness, "", 740*milli, 25*sec),
		"little of a long wait":  queued(starvedAt(unmet(20*sec), history.RoleAPIServer, "cp-2", 400*milli, 30*sec, 32*sec)),
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
	if v := Run(starvedAt(gaveUp(slow), history.RoleAPIServer, "cp-2", 900*milli, often(sec)...)); v.Outcome != RunInconclusive || len(v.Problems) > 0 || len(v.Inconclusive) == 0 {
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
	if v := Run(starvedAt(events, history.RoleHarness, "", 740*milli, 34*sec)); statusOf(v, "NOTHING-RAN") != Inconclusive || v.Outcome != RunInconclusive {
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
			all := starvedAt(e, history.RoleEtcd, "", 500*milli, often(500*milli)...)
			for i := range all {
				if s := all[i].Starvation; s != nil && s.Role == history.RoleEtcd { // and not what a program claims of itself
					s.Queued = true
				}
			}
			return all
		},
	} {
		for _, k := range knownBad() {
			t.Run(name+"/"+k.String(), func(t *testing.T) {
				v := Run(starve(k.build()))
				status := statusOf(v, k.id)
				if v.OK || v.Outcome == RunPassed || status != Failed && status != Inconclusive || status == Inconclusive && invariant(k.id).Tolerance.window == nil {
					t.Error(printed(t, v))
				}
			})
		}
	}
}

// TestEveryInvariantHasATolerance: and it gives a reason.
func TestEveryInvariantHasATolerance(t *testing.T) {
	for _, i := range Invariants() {
		if i.Tolerance.Why == "" {
			t.Errorf("%s: its tolerance has no reason", i.ID)
		}
	}
}

func invariant(id string) Invariant {
	all := Invariants()
	return all[slices.IndexFunc(all, func(i Invariant) bool { return i.ID == id })]
}

// TestWaitsExplainAsMuchAsTheySumUpTo: waits for a processor explain what is late, and not what is much later.
func TestWaitsExplainAsMuchAsTheySumUpTo(t *testing.T) {
	waiting := func(events []history.Event) Verdict {
		return Run(queued(starvedAt(events, history.RoleAPIServer, "cp-1", 250*milli, often(500*milli)...)))
	}
	if v := waiting(faulty(nil, "error")); !v.OK || v.Starvation.Count != 0 || v.Starvation.Queued == 0 || !strings.Contains(printed(t, v), "processes waited for a processor") {
		t.Error(printed(t, v))
	}
	if v := waiting(lateAggregator(2 * sec)); v.Outcome != RunInconclusive || !strings.Contains(printed(t, v), "cp-1's apiserver waited for a processor") {
		t.Error(printed(t, v))
	}
	if v := waiting(lateAggregator(10 * sec)); v.Outcome != RunFailed {
		t.Error(printed(t, v))
	}
}

// silent: the reporter of cp-2 writes nothing for a while from 12 s on, and nobody paused it.
func silent(long time.Duration) []history.Event {
	return faulty(func(w *world) {
		w.at(12*sec, func(w *world) { w.rep["cp-2"].paused = true }).at(12*sec+long, func(w *world) { w.rep["cp-2"].paused = false })
	}, "")
}

// TestWhoseStarvationExplainsALateReport: that of its own node, and of what all nodes share.
func TestWhoseStarvationExplainsALateReport(t *testing.T) {
	for _, c := range []struct {
		role, node string
		want       Outcome
	}{
		{history.RoleReporter, "cp-2", RunInconclusive},
		{history.RolePlugin, "cp-2", RunInconclusive},
		{history.RoleAPIServer, "cp-2", RunInconclusive},
		{history.RoleEtcd, "", RunInconclusive},
		{history.RoleRemoteKMS, "", RunInconclusive},
		{history.RoleHarness, "", RunInconclusive},
		{history.RoleReporter, "cp-1", RunFailed},
		{history.RolePlugin, "cp-1", RunFailed},
		{history.RoleAPIServer, "cp-1", RunFailed},
		{history.RoleAggregator, "", RunFailed},
	} {
		if v := Run(starvedAt(silent(3300*milli), c.role, c.node, 900*milli, 12500*milli)); statusOf(v, "CADENCE") != map[Outcome]Status{RunInconclusive: Inconclusive, RunFailed: Failed}[c.want] || v.Outcome != c.want {
			t.Errorf("%s %s: %s", c.role, c.node, printed(t, v))
		}
	}
	if v := Run(starvedAt(silent(3300*milli), history.RoleReporter, "cp-2", 900*milli, 20*sec)); v.Outcome != RunFailed {
		t.Errorf("at another time: %s", printed(t, v))
	}
}

// TestWhatWaitsOneAfterAnotherAddsUp: what a write passes through waits one after another, and still gets a processor now and then.
func TestWhatWaitsOneAfterAnotherAddsUp(t *testing.T) {
	chain := func(events []history.Event, each time.Duration) []history.Event {
		for _, role := range []string{history.RoleReporter, history.RolePlugin, history.RoleAPIServer} {
			for d := 12 * sec; d < 16*sec; d += 500 * milli {
				events = starvedAt(events, role, "cp-2", each, d-each)
			}
		}
		return queued(events)
	}
	if v := Run(chain(silent(4*sec), 120*milli)); v.Outcome != RunInconclusive {
		t.Error(printed(t, v))
	}
	if v := Run(chain(silent(4*sec), 10*milli)); v.Outcome != RunFailed {
		t.Errorf("within the tolerance: %s", printed(t, v))
	}
}

// TestEachViolationIsExplainedByItself: two reports in a row are late, and each by its own waits.
func TestEachViolationIsExplainedByItself(t *testing.T) {
	twice := func() []history.Event {
		return faulty(func(w *world) {
			for _, at := range []time.Duration{12 * sec, 17 * sec} {
				w.at(at, func(w *world) { w.rep["cp-2"].paused = true }).at(at+3300*milli, func(w *world) { w.rep["cp-2"].paused = false })
			}
		}, "")
	}
	if v := Run(starvedAt(twice(), history.RoleReporter, "cp-2", 2500*milli, 12200*milli, 17200*milli)); v.Outcome != RunInconclusive || explainedIn(v, "CADENCE") < 2 {
		t.Error(printed(t, v))
	}
	if v := Run(starvedAt(twice(), history.RoleReporter, "cp-2", 2500*milli, 12200*milli)); v.Outcome != RunFailed || explainedIn(v, "CADENCE") != 1 {
		t.Error(printed(t, v))
	}
}

// stoppedAt is when the reporter of landsLate was stopped.
const stoppedAt = 8 * sec

// landsLate: the reporter of cp-3 was stopped, its entry was removed two seconds later, and half a second after that a write of it takes effect.
func landsLate() []history.Event {
	w := newWorld(3, "1")
	w.at(stoppedAt, func(w *world) { w.stopReporter("cp-3") })
	w.at(stoppedAt+2*sec, func(w *world) { w.nodes = []string{"cp-1", "cp-2"}; w.expect() })
	w.at(stoppedAt+2500*milli, func(w *world) {
		w.write("cp-3", []wire{{"1", "kek-1", "healthy", contract.FormatTime(w.start.Add(stoppedAt - 10*milli)), ""}})
	})
	w.boot()
	return w.finish(30 * sec)
}

// TestALateWriteOfAStoppedReporter: a write that was in flight when its reporter was stopped brings an entry back after its removal, if the node, or
// what all share, was starved.
func TestALateWriteOfAStoppedReporter(t *testing.T) {
	for name, c := range map[string]struct {
		role, node string
		long       time.Duration
		want       Status
	}{
		"reporter":        {history.RoleReporter, "cp-3", 1500 * milli, Inconclusive},
		"API server":      {history.RoleAPIServer, "cp-3", 1500 * milli, Inconclusive},
		"etcd":            {history.RoleEtcd, "", 1500 * milli, Inconclusive},
		"another node":    {history.RoleAPIServer, "cp-1", 1500 * milli, Failed},
		"for a moment":    {history.RoleAPIServer, "cp-3", 150 * milli, Failed},
		"not long enough": {history.RoleAPIServer, "cp-3", 250 * milli, Failed},
	} {
		events := landsLate()
		if v := Run(events); statusOf(v, "NO-RESURRECTION") != Failed {
			t.Fatalf("%s", printed(t, v))
		}
		if v := Run(starvedAt(events, c.role, c.node, c.long, stoppedAt)); statusOf(v, "NO-RESURRECTION") != c.want {
			t.Errorf("%s: %s", name, printed(t, v))
		}
	}
}
