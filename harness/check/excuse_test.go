package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// TestSilenceIsExcusedByWhatCausesIt: cp-2 writes nothing from 10 s to 22 s. What could keep it from writing is an excuse, and nothing else that goes on meanwhile.
func TestSilenceIsExcusedByWhatCausesIt(t *testing.T) {
	refusal := func(r history.Refusal) func(*world, bool) {
		return func(w *world, down bool) {
			r := r
			r.Code, r.Over = history.RefusalCode(r.Mode), !down
			w.record("backend", &r)
		}
	}
	link := func(l history.Link) func(*world, bool) {
		return func(w *world, down bool) {
			l := l
			if !down {
				l.State, l.Delay = history.LinkOK, 0
			}
			w.record("backend", &l)
		}
	}
	way := history.Link{From: history.RoleReporter, To: history.RoleAPIServer, Node: "cp-2"}
	state := func(state string, delay time.Duration) history.Link {
		l := way
		l.State, l.Delay = state, delay
		return l
	}
	others := state(history.LinkCut, 0)
	others.Node = "cp-1"
	for name, tt := range map[string]struct {
		tell    func(*world, bool)
		form    string
		excused bool
	}{
		"nothing":                                 {func(*world, bool) {}, "", false},
		"its link is cut":                         {link(state(history.LinkCut, 0)), "", true},
		"another node's link is cut":              {link(others), "", false},
		"its link takes longer than a write":      {link(state(history.LinkSlow, time.Second)), "", true},
		"its link is slow, and a write passes":    {link(state(history.LinkSlow, 20*time.Millisecond)), "", false},
		"its writes are refused":                  {refusal(history.Refusal{Role: history.RoleReporter, Verb: "patch", Mode: history.RefuseForbidden}), "", true},
		"all that reporters ask is refused":       {refusal(history.Refusal{Role: history.RoleReporter, Mode: history.RefuseUnavailable}), "", true},
		"at its API server":                       {refusal(history.Refusal{Node: "cp-2", Mode: history.RefuseUnavailable}), "", true},
		"at another API server":                   {refusal(history.Refusal{Node: "cp-1", Mode: history.RefuseUnavailable}), "", false},
		"the aggregator is refused":               {refusal(history.Refusal{Role: history.RoleAggregator, Mode: history.RefuseUnavailable}), "", false},
		"reads are refused, and it reads":         {refusal(history.Refusal{Verb: "get", Mode: history.RefuseForbidden}), "", true},
		"reads are refused, and it reads nothing": {refusal(history.Refusal{Verb: "get", Mode: history.RefuseForbidden}), history.FormHealthReports, false},
		"what it never asks is refused":           {refusal(history.Refusal{Verb: "list", Mode: history.RefuseForbidden}), "", false},
		"its credential has expired":              {refusal(history.Refusal{Role: history.RoleReporter, Node: "cp-2", Mode: history.RefuseExpired}), "", true},
		"its clock was set back by as much": {func(w *world, down bool) {
			if down {
				w.record("backend", &history.Clock{Node: "cp-2", Ahead: 2 * sec})
				w.record("backend", &history.Clock{Node: "cp-2", Ahead: 0})
			}
		}, "", false},
		"its clock is wrong": {func(w *world, down bool) {
			w.record("backend", &history.Clock{Node: "cp-2", Ahead: map[bool]time.Duration{true: -time.Hour}[down]})
		}, "", false},
	} {
		events := interrupted(func(w *world, down bool) {
			tt.tell(w, down)
		})
		if tt.form != "" {
			w := newWorld(3, "1")
			w.run.Contract = tt.form
			w.at(10*sec, func(w *world) { w.rep["cp-2"].cut = true; tt.tell(w, true) })
			w.at(22*sec, func(w *world) { w.rep["cp-2"].cut = false; tt.tell(w, false) })
			w.boot()
			events = w.finish(40 * sec)
		}
		if _, violated := failedIDs(Run(events))["CADENCE"]; violated == tt.excused {
			t.Errorf("%s: CADENCE violated %v, expected %v", name, violated, !tt.excused)
		}
	}
}

// TestDisturbedBoundsBeginAnew: a moment in which a reporter could not write excuses a failure, or a recovery, that is not seen for that moment, and no longer.
func TestDisturbedBoundsBeginAnew(t *testing.T) {
	disturbed := func(at time.Duration, lie func(*world, map[string]facts.Value, *string)) []history.Event {
		return faulty(func(w *world) {
			link := func(state string) func(*world) {
				return func(w *world) {
					w.record("backend", &history.Link{From: history.RoleReporter, To: history.RoleAPIServer, Node: "cp-2", State: state})
				}
			}
			w.at(at, link(history.LinkCut)).at(at+200*time.Millisecond, link(history.LinkOK))
			w.bad.table = lie
		}, "error")
	}
	unnamed := func(_ *world, _ map[string]facts.Value, message *string) { *message = "somewhere" }
	always := func(w *world, rollups map[string]facts.Value, message *string) {
		if w.now.Sub(w.start) > 12*sec {
			rollups[contract.ConditionDegraded] = said("True", contract.ReasonPluginUnreachable)
			*message = "cp-2/1: error: it was"
		}
	}
	for name, tt := range map[string]struct {
		events []history.Event
		id     string
		want   bool
	}{
		"failure named, disturbed":           {disturbed(10*sec+300*time.Millisecond, nil), "DETECTION", false},
		"failure not named, disturbed":       {disturbed(10*sec+300*time.Millisecond, unnamed), "DETECTION", true},
		"recovery seen, disturbed":           {disturbed(20*sec+300*time.Millisecond, nil), "RECOVERY", false},
		"recovery never seen, and disturbed": {disturbed(20*sec+300*time.Millisecond, always), "RECOVERY", true},
	} {
		if _, violated := failedIDs(Run(tt.events))[tt.id]; violated != tt.want {
			t.Errorf("%s: %s violated %v, expected %v", name, tt.id, violated, tt.want)
		}
	}
}

// TestLatenessExcusesNoChatter: an aggregator that learns of changes late, or is refused, may answer late. Without a change it has nothing to say.
func TestLatenessExcusesNoChatter(t *testing.T) {
	late := map[string]func(*world, bool){
		"watches are late": func(w *world, on bool) {
			w.record("backend", &history.Watches{Late: map[bool]time.Duration{true: 2 * sec}[on]})
		},
		"its reads are refused": func(w *world, on bool) {
			w.record("backend", &history.Refusal{Role: history.RoleAggregator, Verb: "list", Mode: history.RefuseUnavailable, Code: 503, Over: !on})
		},
	}
	for name, tell := range late {
		for _, chatty := range []bool{false, true} {
			events := plain(func(w *world) {
				w.at(14*sec, func(w *world) { tell(w, true) }).at(30*sec, func(w *world) { tell(w, false) })
				if chatty {
					w.at(20*sec, func(w *world) { w.bad.chatty = true }).at(21*sec, func(w *world) { w.bad.chatty = false })
				}
			})()
			if _, violated := failedIDs(Run(events))["QUIET"]; violated != chatty {
				t.Errorf("%s, chatty %v: QUIET violated %v", name, chatty, violated)
			}
		}
	}
}

// TestWrongClockDelaysStaleness: who wrote by a clock that was ahead is believed for as much longer, and not for ever; a clock that was behind excuses nothing.
func TestWrongClockDelaysStaleness(t *testing.T) {
	for name, tt := range map[string]struct {
		ahead    time.Duration
		unknown  time.Duration // when the rollup turns, after the last write
		violated bool
	}{
		"in time":           {0, 4 * sec, false},
		"never":             {0, time.Hour, true},
		"ahead, as late":    {900 * time.Millisecond, 4*sec + 900*time.Millisecond, false},
		"ahead, and never":  {900 * time.Millisecond, time.Hour, true},
		"behind, in time":   {-900 * time.Millisecond, 4 * sec, false},
		"behind, and never": {-900 * time.Millisecond, time.Hour, true},
	} {
		w := newWorld(3, "1")
		w.at(8*sec, func(w *world) { w.record("backend", &history.Clock{Node: "cp-2", Ahead: tt.ahead}) })
		w.at(12*sec, func(w *world) { w.stopReporter("cp-2") })
		w.bad.entries = func(w *world, node string, all []facts.WireEntry) []facts.WireEntry {
			if node == "cp-2" && w.now.Sub(w.start) > 8*sec {
				all[0].LastChecked = contract.FormatTime(w.now.Add(tt.ahead))
			}
			return all
		}
		w.bad.table = func(w *world, rollups map[string]facts.Value, _ *string) {
			if w.now.Sub(w.start) < 12*sec+tt.unknown {
				rollups[contract.ConditionDegraded] = said("False", contract.ReasonAsExpected)
			}
		}
		w.boot()
		if _, violated := failedIDs(Run(w.finish(30 * sec)))["STALE-UNKNOWN"]; violated != tt.violated {
			t.Errorf("%s: STALE-UNKNOWN violated %v, expected %v", name, violated, tt.violated)
		}
	}
}

// TestWriteOfUnknownOutcomeCounts: an API server that gives up on a request may have written it before. The report that the CR shows is as fresh as any.
func TestWriteOfUnknownOutcomeCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		landed   bool
		unknown  time.Duration // when the rollup turns
		violated bool
	}{
		"landed, in time":       {true, 17 * sec, false},
		"landed, too late":      {true, 20 * sec, true},
		"did not land, as late": {false, 17 * sec, true},
	} {
		w := newWorld(3, "1")
		givenUp := func() bool { return w.now.Sub(w.start) > 9*sec }
		w.bad.request = func(w *world, r *history.Request) {
			if r.FieldManager == contract.FieldManager("cp-2") && givenUp() {
				r.Code, r.ResourceVersion = 504, ""
			}
		}
		w.at(9*sec, func(w *world) { w.rep["cp-2"].cut = !tt.landed })
		w.at(13*sec, func(w *world) { w.stopReporter("cp-2") })
		w.bad.table = func(w *world, rollups map[string]facts.Value, _ *string) {
			if w.now.Sub(w.start) < tt.unknown {
				rollups[contract.ConditionDegraded] = said("False", contract.ReasonAsExpected)
			}
		}
		w.boot()
		if _, violated := failedIDs(Run(w.finish(30 * sec)))["STALE-UNKNOWN"]; violated != tt.violated {
			t.Errorf("%s: STALE-UNKNOWN violated %v, expected %v", name, violated, tt.violated)
		}
	}
}
