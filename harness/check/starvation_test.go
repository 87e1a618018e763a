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

// stalled adds stalls to a history, each from a time since its beginning, for a while.
func stalled(events []history.Event, role, node string, length time.Duration, from ...time.Duration) []history.Event {
	if len(events) == 0 {
		return events
	}
	out := slices.Clone(events)
	for _, d := range from {
		s := history.Stall{Role: role, Node: node, From: events[0].At.Add(d), To: events[0].At.Add(d + length)}
		out = append(out, history.Event{Seq: int64(len(out) + 1), At: s.To, Kind: history.KindStall, Source: "test", Stall: &s})
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

// starvedIn is how many violations of an invariant were not judged.
func starvedIn(v Verdict, id string) int {
	for _, r := range v.Invariants {
		if r.ID == id {
			return r.StarvedCount
		}
	}
	return 0
}

// TestStarvedIsNotAMistake: what only the machine is to blame for is a failure without a stall, and none with it.
func TestStarvedIsNotAMistake(t *testing.T) {
	for name, c := range map[string]struct {
		events     []history.Event
		role, node string
		from, long time.Duration
		ids        string
	}{
		"a probe ran out of time": {ranOutOfTime(outOfTime), history.RoleReporter, "cp-2", 12*sec + 150*milli, 740 * milli, "TRUTHFUL-PROBE FALSE-ALARM"},
		"… on the whole machine":  {ranOutOfTime(outOfTime), history.RoleHarness, "", 12*sec + 150*milli, 740 * milli, "TRUTHFUL-PROBE FALSE-ALARM"},
		"a report grows stale":    {stoodStill(), history.RoleHarness, "", 12*sec + 10*milli, 5400 * milli, "CADENCE FALSE-ALARM"},
		"a rollup is late":        {lateAggregator(2300 * milli), history.RoleAggregator, "", 10*sec + 100*milli, 1900 * milli, "ROLLUP-TRUTH"},
		"… its API server":        {lateAggregator(2300 * milli), history.RoleAPIServer, "cp-3", 10*sec + 100*milli, 1900 * milli, "ROLLUP-TRUTH"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := Run(c.events); v.OK || len(v.Undecided) > 0 {
				t.Fatalf("it is no failure without a stall:\n%s", printed(t, v))
			}
			v := Run(stalled(c.events, c.role, c.node, c.long, c.from))
			text := printed(t, v)
			if !v.OK || v.Stalls.Count != 1 || v.Stalls.Longest != c.long || !strings.Contains(text, "stalls of the machine: 1, for "+short(c.long)) {
				t.Errorf("%s", text)
			}
			for _, id := range strings.Fields(c.ids) {
				if starvedIn(v, id) == 0 || !strings.Contains(text, "NOTE starved: "+id) || !strings.Contains(text, "no processor time for "+short(c.long)+" at +"+short(c.from)) {
					t.Errorf("%s is not shown as starved:\n%s", id, text)
				}
			}
		})
	}
}

// TestStallsDoNotExcuse: mistakes that a stall is near to, and that must be caught all the same.
func TestStallsDoNotExcuse(t *testing.T) {
	for name, c := range map[string]struct {
		events []history.Event
		id     string
	}{
		"an error of another kind": {stalled(ranOutOfTime("Unavailable: connection refused"), history.RoleReporter, "cp-2", 740*milli, 12*sec+150*milli), "TRUTHFUL-PROBE"},
		"too short for a deadline": {stalled(ranOutOfTime(outOfTime), history.RoleReporter, "cp-2", 200*milli, 12*sec+150*milli), "TRUTHFUL-PROBE"},
		"on another node":          {stalled(ranOutOfTime(outOfTime), history.RoleReporter, "cp-1", 740*milli, 12*sec+150*milli), "TRUTHFUL-PROBE"},
		"at another time":          {stalled(ranOutOfTime(outOfTime), history.RoleReporter, "cp-2", 740*milli, 15*sec), "TRUTHFUL-PROBE"},
		"an invented answer": {stalled(faulty(entriesAs(12*sec, 13*sec, func(_ *world, e *wire) { e.Status, e.Detail = "unhealthy", "deadline exceeded" }), ""),
			history.RoleHarness, "", 900*milli, 12*sec), "TRUTHFUL-PROBE"},
		"a report grows stale after the stall": {stalled(stoodStill(), history.RoleHarness, "", 600*milli, 7*sec), "FALSE-ALARM"},
		"later than the stall explains":        {stalled(lateAggregator(3500*milli), history.RoleAggregator, "", 700*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"late, with stalls elsewhere":          {stalled(lateAggregator(2300*milli), history.RoleAggregator, "", 700*milli, 5*sec, 20*sec), "ROLLUP-TRUTH"},
		"late twice, stalled once": {stalled(faulty(func(w *world) {
			for _, at := range []time.Duration{10 * sec, 20 * sec} { // it neither detects nor recovers in time
				w.at(at, func(w *world) { w.agg.paused = true }).at(at+2300*milli, func(w *world) { w.agg.paused = false })
			}
		}, "error"), history.RoleAggregator, "", 1900*milli, 10*sec+100*milli), "ROLLUP-TRUTH"},
		"never True": {stalled(faulty(degradedAs(value{"False", "AsExpected"}, isTrue), "error"), history.RoleHarness, "", 900*milli, 11*sec, 14*sec), "FALSE-HEALTHY"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := Run(c.events); statusOf(v, c.id) != Failed || v.OK || len(v.Undecided) > 0 {
				t.Error(printed(t, v))
			}
		})
	}
}

// TestSmallStallsExcuseNoKnownMistake: a machine that stalls a little, all the time, hides nothing of what is known to be wrong.
func TestSmallStallsExcuseNoKnownMistake(t *testing.T) {
	for _, k := range knownBad() {
		t.Run(k.String(), func(t *testing.T) {
			v := Run(stalled(k.build(), history.RoleHarness, "", 160*milli, often(3*sec)...))
			if statusOf(v, k.id) != Failed || v.OK || len(v.Undecided) > 0 {
				t.Error(printed(t, v))
			}
		})
	}
}

// TestStallsChangeNoGoodHistory: nor do they make anything of one that is well.
func TestStallsChangeNoGoodHistory(t *testing.T) {
	for name, build := range fine() {
		t.Run(name, func(t *testing.T) {
			v := Run(stalled(build(), history.RoleHarness, "", 300*milli, often(sec)...))
			if !v.OK || v.Stalls.Total == 0 {
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
				v := Run(stalled(events, role, "cp-2", 7*sec+100*milli, 9950*milli))
				if statusOf(v, "STALE-UNKNOWN") != Failed || v.Stalls.Count != 0 || v.OK {
					t.Errorf("%s: %s", role, printed(t, v))
				}
			}
		})
	}
}

func frozenState(paused bool) string {
	return map[bool]string{true: history.ProcessPaused, false: history.ProcessResumed}[paused]
}

// TestABusyMachineGivesNoVerdict: neither blame nor praise for what is late, and blame all the same for what is wrong.
func TestABusyMachineGivesNoVerdict(t *testing.T) {
	busy := func(events []history.Event) Verdict {
		return Run(stalled(events, history.RoleHarness, "", 200*milli, often(500*milli)...))
	}
	late := busy(lateAggregator(6 * sec))
	if late.OK || len(late.Problems) > 0 || len(late.Undecided) != 1 || !strings.Contains(late.Undecided[0], "the machine is too busy") || !strings.Contains(printed(t, late), "could not run") {
		t.Error(printed(t, late))
	}
	if v := busy(faulty(nil, "error")); !v.OK { // all bounds were kept in spite of it
		t.Error(printed(t, v))
	}
	wrong := busy(faulty(messageAs(func(s string) string { return strings.ReplaceAll(s, ",", ", ") }), "error"))
	if wrong.OK || len(wrong.Undecided) > 0 || statusOf(wrong, "FORMAT") != Failed {
		t.Error(printed(t, wrong))
	}
}

// TestAStarvedExpectationIsUndecided: a failed expectation is not met, and nobody's fault, if more than the tolerance stalled.
func TestAStarvedExpectationIsUndecided(t *testing.T) {
	unmet := func() []history.Event {
		events := faulty(nil, "error")
		for i := range events {
			if x := events[i].Expectation; x != nil {
				failed := *x
				failed.OK, failed.Detail, failed.Took = false, "was never true", 2*sec
				events[i].Expectation = &failed
			}
		}
		return events
	}
	if v := Run(stalled(unmet(), history.RoleHarness, "", 740*milli, 34*sec)); v.OK || len(v.Problems) > 0 || len(v.Undecided) != 1 || !strings.Contains(v.Undecided[0], "740ms") {
		t.Error(printed(t, v))
	}
	for name, events := range map[string][]history.Event{
		"within the tolerance": stalled(unmet(), history.RoleHarness, "", 190*milli, 34*sec),
		"long before":          stalled(unmet(), history.RoleHarness, "", 740*milli, 25*sec),
		"and something is wrong": stalled(slices.DeleteFunc(unmet(), func(e history.Event) bool { return e.Kind == history.KindAction }),
			history.RoleHarness, "", 740*milli, 34*sec)[:],
	} {
		if name == "and something is wrong" {
			events[len(events)-1].Seq++ // a copy of its own
			events = append(events, history.Event{At: events[0].At.Add(12 * sec), Kind: history.KindObject, Source: "watch", Object: &history.Object{
				Resource: "clusteroperators.config.openshift.io", Name: "kube-apiserver", ResourceVersion: "x", Conditions: []history.Condition{{Type: contract.ConditionType("cp-1"), Status: "True"}}}})
		}
		if v := Run(events); v.OK || len(v.Undecided) > 0 || len(v.Problems) == 0 {
			t.Errorf("%s: %s", name, printed(t, v))
		}
	}
}

// TestEveryInvariantHasALenience: and says why.
func TestEveryInvariantHasALenience(t *testing.T) {
	table := leniences()
	for _, i := range Invariants() {
		if table[i.ID].why == "" {
			t.Errorf("%s: is not in the table", i.ID)
		}
	}
	if len(table) != len(Invariants()) {
		t.Errorf("%d rows for %d invariants", len(table), len(Invariants()))
	}
}

// TestWhoWaitsForAProcessorIsPardonedForAsLong: a queue explains what is late by no more than the wait, and however long queues are, they
// are no reason to give no verdict: everything got a processor now and then.
func TestWhoWaitsForAProcessorIsPardonedForAsLong(t *testing.T) {
	queued := func(events []history.Event) Verdict {
		all := stalled(events, history.RoleAPIServer, "cp-1", 400*milli, often(500*milli)...)
		for i := range all {
			if all[i].Stall != nil {
				all[i].Stall.Queued = true
			}
		}
		return Run(all)
	}
	if v := queued(faulty(nil, "error")); !v.OK || v.Stalls.Count != 0 || v.Stalls.Queued == 0 || !strings.Contains(printed(t, v), "had to wait for a processor") {
		t.Error(printed(t, v))
	}
	late := queued(lateAggregator(2 * sec))
	if len(late.Undecided) > 0 || !late.OK || !strings.Contains(printed(t, late), "let cp-1's apiserver wait for a processor") {
		t.Error(printed(t, late))
	}
	if v := queued(lateAggregator(10 * sec)); v.OK || len(v.Undecided) > 0 {
		t.Error(printed(t, v))
	}
}
