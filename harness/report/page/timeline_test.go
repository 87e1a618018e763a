package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report/page"
)

// story is a history that is written by hand, in seconds since it began.
type story struct {
	log *history.Log
}

var began = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

func newStory() *story {
	s := &story{log: history.NewLog(nil)}
	timing := contract.DefaultTiming()
	timing.Interval, timing.Jitter, timing.ProbeTimeout, timing.WriteTimeout = time.Second, 0, 500*time.Millisecond, time.Second
	s.at(0, &history.Run{Schema: history.Schema, Scenario: "s", Backend: "sim", Timing: timing, Operator: "kubeapiservers", ClusterOperator: "kube-apiserver"})
	s.at(0, &history.Phase{Name: history.PhaseBefore})
	return s
}

func (s *story) at(seconds float64, payload any) { s.log.Record(at(seconds), "test", payload) }

func (s *story) call(seconds float64, node, healthz string) {
	s.at(seconds, &history.Call{Node: node, KeyID: "1", Method: "Status", Began: at(seconds - .2), Ended: at(seconds), Took: 200 * time.Millisecond, Outcome: history.CallOK, Code: "OK", Healthz: healthz})
}

func (s *story) act(from, to float64, id, verb, target string, params map[string]any) {
	a := history.Action{ID: id, Verb: verb, Target: target, Params: params, State: history.ActionBegan}
	done := a
	done.State = history.ActionDone
	s.at(from, &a)
	s.at(to, &done)
}

func (s *story) report(seconds float64, node, status, detail string) {
	entry := contract.Entry{KeyID: "1", Status: contract.Status(status), LastChecked: at(seconds), Detail: detail}
	if status == "healthy" {
		entry.KEKID = "kek-1"
	}
	message, err := contract.EncodeMessage([]contract.Entry{entry})
	if err != nil {
		panic(err)
	}
	s.at(seconds, &history.Object{Resource: "kubeapiservers.operator.openshift.io", Name: "cluster",
		Conditions: []*history.Condition{{Type: contract.ConditionType(node), Status: "True", Message: message}, {Type: contract.ConditionDegraded, Status: "False", Reason: "AsExpected"}}})
}

func (s *story) end(seconds float64) []history.Event {
	s.at(seconds, &history.Phase{Name: history.PhaseEnd})
	s.at(seconds, &history.End{Complete: true})
	return s.log.Events()
}

// row of a title in a lane; -1 if there is none.
func row(t page.Timeline, lane, title string) int {
	for i, r := range t.Rows {
		if t.Groups[r.Group].ID == lane && r.Title == title {
			return i
		}
	}
	return -1
}

func states(t page.Timeline, r int) (words []string) {
	for _, s := range t.States {
		if s.Row == r {
			words = append(words, fmt.Sprintf("%s %s %g-%g", s.Class, s.Text, s.From, s.To))
		}
	}
	return words
}

func TestLanes(t *testing.T) {
	s := newStory()
	s.call(1, "cp-10", "ok")
	s.report(1, "cp-2", "healthy", "")
	s.call(1.1, "cp-2", "sealed")
	s.report(1.2, "cp-2", "unhealthy", "sealed")
	s.at(1.3, &history.Request{User: contract.ReporterIdentity("cp-2"), Verb: "patch", Resource: "kubeapiservers.operator.openshift.io", Name: "cluster", Code: 403, Message: "no", APIServer: "cp-1"})
	s.at(1.4, &history.Link{From: "aggregator", To: "load-balancer", State: history.LinkCut})
	s.at(1.5, &history.Process{Role: history.RoleReporter, Node: "cp-2", State: history.ProcessKilled})
	s.at(1.6, &history.Process{Role: history.RoleOperator, State: history.ProcessExited, Detail: "exit code 1"})
	tl := page.NewTimeline(s.end(3), check.Verdict{}, 0)
	var lanes []string
	for _, g := range tl.Groups {
		lanes = append(lanes, g.ID)
	}
	if got := strings.Join(lanes, " "); got != "scenario rollups node/cp-2 node/cp-10 network" {
		t.Errorf("lanes %s", got)
	}
	for _, x := range []struct {
		lane, row string
		class     page.Class
		text      string
	}{
		{"node/cp-10", "plugin 1 says", page.OK, "cp-10/1 Status: ok"},
		{"node/cp-2", "plugin 1 says", page.Warn, `cp-2/1 Status: healthz "sealed"`},
		{"node/cp-2", "report 1", page.Warn, "report of cp-2/1: unhealthy sealed"},
		{"node/cp-2", "writes", page.Bad, "403 no, at cp-1"},
		{"node/cp-2", "reporter", page.Off, "reporter cp-2 killed"},
		{"rollups", "operator", page.Bad, "operator exited: exit code 1"},
		{"network", "aggregator → load-balancer", page.Bad, "cut"},
	} {
		found := false
		for _, e := range tl.Events {
			found = found || e.Row == row(tl, x.lane, x.row) && e.Class == x.class && strings.Contains(e.Text, x.text)
		}
		if !found {
			t.Errorf("no event %s %q in %s of %s", x.class, x.text, x.row, x.lane)
		}
	}
}

// A report that is not renewed becomes stale four intervals after its probe.
func TestStatesOfReports(t *testing.T) {
	s := newStory()
	s.report(1, "cp-1", "healthy", "")
	s.report(2, "cp-1", "error", "Unavailable")
	s.report(9, "cp-1", "healthy", "")
	tl := page.NewTimeline(s.end(10), check.Verdict{}, 0)
	got := strings.Join(states(tl, row(tl, "node/cp-1", "report 1")), "; ")
	if want := "ok healthy 1000-2000; bad error Unavailable 2000-6000; unknown stale 6000-9000; ok healthy 9000-10000"; got != want {
		t.Errorf("%s\nexpected %s", got, want)
	}
	if got := states(tl, row(tl, "rollups", "Degraded")); len(got) != 1 || got[0] != "ok False AsExpected 1000-10000" {
		t.Errorf("rollup %v", got)
	}
}

// A fault is in force from when it was injected until it was released; only the lanes of its node are shaded.
func TestBandsOfFaults(t *testing.T) {
	s := newStory()
	s.call(.5, "cp-1", "ok")
	s.call(.5, "cp-2", "ok")
	s.act(1, 1.1, "steps[0]", "inject", "plugin cp-2/*", map[string]any{"fault": "hang"})
	s.act(2, 2.1, "steps[1]", "inject", "plugin cp-1/1", map[string]any{"fault": "delay"})
	s.act(3, 3.2, "steps[2]", "release", "plugin cp-2/1", nil) // covers one plugin, not all of the node
	s.act(4, 4.2, "steps[3]", "release", "plugin cp-2/*", nil) // this does
	s.act(5, 5.1, "steps[4]", "kill", "process reporter/cp-1", nil)
	s.act(6, 6.4, "heal[0]", "release", "plugin all", nil)
	s.act(7, 7.3, "heal[1]", "start", "process reporter", nil)
	tl := page.NewTimeline(s.end(9), check.Verdict{}, 0)
	want := map[string]string{
		"inject plugin cp-2/* fault=hang":  "1000-4200 node/cp-2",
		"inject plugin cp-1/1 fault=delay": "2000-6400 node/cp-1",
		"kill process reporter/cp-1":       "5000-7300 node/cp-1",
	}
	for _, b := range tl.Bands {
		var lanes []string
		for _, g := range b.Groups {
			lanes = append(lanes, tl.Groups[g].ID)
		}
		got := fmt.Sprintf("%g-%g %s", b.From, b.To, strings.Join(lanes, ","))
		if b.Fault != (want[b.Text] != "") || b.Fault && got != want[b.Text] {
			t.Errorf("band %q: %s, fault %v; expected %q", b.Text, got, b.Fault, want[b.Text])
		}
		delete(want, b.Text)
	}
	if len(want) > 0 {
		t.Errorf("no band for %v", want)
	}
}

// A violation is marked with its window, in the order of time; an expectation that was not met is one, too.
func TestMarks(t *testing.T) {
	s := newStory()
	s.call(.5, "cp-1", "ok")
	s.at(.6, &history.Request{User: contract.ReporterIdentity("cp-1"), Verb: "patch", Code: 200, APIServer: "cp-1"})
	s.at(5, &history.Expectation{ID: "steps[1].expect", Mode: "within", Text: "x == 1", OK: false, Detail: "x = 2", Bound: 3 * time.Second, Took: 3500 * time.Millisecond})
	events := s.end(9)
	v := check.Verdict{Invariants: []check.Result{
		{ID: "CADENCE", Status: check.Failed, Count: 1, Violations: []check.Violation{{At: at(3), From: at(.6), To: at(3), Node: "cp-1", Seen: "nothing", Allowed: "a write"}}},
		{ID: "UNION", Status: check.Excused, Excuse: "on purpose", Count: 1, Violations: []check.Violation{{At: at(4), Seq: 3, Seen: "that"}}},
	}}
	tl := page.NewTimeline(events, v, 0)
	if len(tl.Marks) != 3 {
		t.Fatalf("%+v", tl.Marks)
	}
	c, u, x := tl.Marks[0], tl.Marks[1], tl.Marks[2]
	if c.ID != "CADENCE" || !c.Window || c.From != 600 || c.To != 3000 || c.At != 3000 || c.Target != row(tl, "node/cp-1", "writes") || c.Event != -1 {
		t.Errorf("%+v", c)
	}
	if u.ID != "UNION" || u.Window || u.Excused != "on purpose" || tl.Events[u.Event].Seq != 3 || u.Target != row(tl, "node/cp-1", "plugin 1 says") {
		t.Errorf("%+v", u)
	}
	if x.ID != "steps[1].expect" || x.From != 1500 || x.To != 4500 || x.At != 5000 || x.Seen != "x = 2" || x.Target != row(tl, "scenario", "expected") {
		t.Errorf("%+v", x)
	}
	if c.Row == x.Row && c.To > x.From {
		t.Errorf("marks hide one another: %+v and %+v", c, x)
	}
	if len(page.NewTimeline(events[:4], check.Verdict{}, 0).Marks) != 0 {
		t.Error("a mark without a violation")
	}
}

// A long history gives a small page. What is folded is counted, and what a mark points at is still there.
func TestFolding(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	for name, healthz := range map[string]func(i int) string{
		"the same again and again": func(int) string { return "ok" },
		"each time something else": func(i int) string { return fmt.Sprintf("broken in way %d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			const n = 100000
			s := newStory()
			for i := range n {
				s.call(float64(i)/1000, fmt.Sprintf("cp-%d", i%5), healthz(i))
			}
			events := s.end(n / 1000)
			v := check.Verdict{Invariants: []check.Result{{ID: "X", Status: check.Failed, Violations: []check.Violation{{At: at(50), Seq: 50003}}}}}
			tl := page.NewTimeline(events, v, 10000)
			if len(tl.Events) > 10000 || len(tl.Events)+tl.Folded != len(events) || tl.Total != len(events) {
				t.Errorf("%d events are shown, %d folded, of %d", len(tl.Events), tl.Folded, len(events))
			}
			if e := tl.Events[tl.Marks[0].Event]; e.Seq != 50003 || e.Count != 0 {
				t.Errorf("the mark points at %+v", e)
			}
			var r page.Run
			if err := r.SetTimeline(tl); err != nil || len(r.Packed) > 4<<20 {
				t.Errorf("%d bytes, %v", len(r.Packed), err)
			}
		})
	}
}

// An event that is long is cut, and it is said so.
func TestLongEvents(t *testing.T) {
	s := newStory()
	s.call(1, "cp-1", strings.Repeat("ä", 100000))
	tl := page.NewTimeline(s.end(2), check.Verdict{}, 0)
	for _, e := range tl.Events {
		if len(e.Raw) > 9000 || len(e.Text) > 1300 {
			t.Errorf("%d bytes of JSON, %d of text", len(e.Raw), len(e.Text))
		}
	}
	if tl.Cut != 1 {
		t.Errorf("%d events are cut", tl.Cut)
	}
}

// Rows beside the point are shown at once only if something happened in them.
func TestDullRows(t *testing.T) {
	s := newStory()
	for i, state := range []string{history.ProcessReady, history.ProcessExited} {
		node := fmt.Sprintf("cp-%d", i+1)
		s.call(1, node, "ok")
		s.at(1, &history.Process{Role: history.RoleReporter, Node: node, State: state})
	}
	tl := page.NewTimeline(s.end(2), check.Verdict{}, 0)
	for lane, want := range map[string]bool{"node/cp-1": true, "node/cp-2": false} {
		if got := tl.Rows[row(tl, lane, "reporter")].Dull; got != want {
			t.Errorf("reporter of %s: dull %v", lane, got)
		}
		if tl.Rows[row(tl, lane, "plugin 1 says")].Dull {
			t.Errorf("the answers of %s are dull", lane)
		}
	}
}

// Odd histories give a timeline, too.
func TestOddHistories(t *testing.T) {
	for name, events := range map[string][]history.Event{
		"nothing":                  nil,
		"no heading":               {{Kind: history.KindPhase, Phase: &history.Phase{Name: history.PhaseEnd}}},
		"no payload":               {{Seq: 1, At: began, Kind: history.KindCall}},
		"an end that nobody began": {{Seq: 1, At: began, Kind: history.KindAction, Action: &history.Action{ID: "a", State: history.ActionDone}}},
		"a report in no form": {{Seq: 1, At: began, Kind: history.KindRun, Run: &history.Run{Operator: "kubeapiservers"}},
			{Seq: 2, At: began.Add(-time.Hour), Kind: history.KindObject, Object: &history.Object{Resource: "kubeapiservers.x", Conditions: []*history.Condition{{Type: "KMSHealthReporter_n", Message: "{"}}}}},
	} {
		t.Run(name, func(t *testing.T) { page.NewTimeline(events, check.Run(events), 10) })
	}
}
