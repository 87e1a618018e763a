package invariants

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// heldUpBy has what a link held up, for 8 seconds from the instant on that it returns, of the reporter of cp-1.
func heldUpBy(l history.Link, requests ...*history.Request) (*lateWrites, time.Time) {
	start := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	began := start.Add(5 * time.Second)
	log := history.NewLog(nil)
	log.Record(start, "engine", &history.Run{Operator: "kubeapiservers", Tolerance: 200 * time.Millisecond, Timing: contract.Timing{Interval: time.Second, Jitter: 100 * time.Millisecond}})
	log.Record(began, "backend", &l)
	for _, r := range requests {
		log.Record(r.Received, "audit/cp-1", r)
	}
	log.Record(start.Add(20*time.Second), "engine", &history.Phase{Name: history.PhaseEnd})
	return &lateWrites{Facts: facts.New(log.Events()), node: "cp-1", held: span.Set{span.New(began, began.Add(8*time.Second))}, delivered: map[time.Time]int64{}}, began
}

// A way that is held up delivers one write late: what was under way or, over a mute link, the first that was sent after that. A write of a later tick was
// kept.
func TestOneLateWriteOfAHold(t *testing.T) {
	for state, first := range map[string]bool{history.LinkMute: true, history.LinkCut: false} {
		late, began := heldUpBy(history.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer, State: state})
		for after, excused := range map[time.Duration]bool{-time.Second / 2: true, time.Second * 4 / 5: first, 3 * time.Second: false} {
			late.delivered = map[time.Time]int64{}
			w := facts.Write{Span: span.New(late.held[0].To, late.held[0].To), Seq: 7}
			if got := late.explains(w, began.Add(after)); got != excused {
				t.Errorf("%s: probed %v after the hold began: excused %v, expected %v", state, after, got, excused)
			}
			if w.Seq++; excused && late.explains(w, began.Add(after)) {
				t.Errorf("%s: probed %v after the hold began: a second write is excused as well", state, after)
			}
		}
	}
}

// The aggregator writes the reports of streams to one connection until it gives it up.
func TestLateWriteOfTheAggregator(t *testing.T) {
	late, began := heldUpBy(history.Link{From: history.RoleAggregator, To: history.RoleLoadBalancer, State: history.LinkCut})
	for connectivity, until := range map[string]time.Duration{"": 0, history.ConnectStream: aggregatorRedials} {
		late.Run.Connectivity = connectivity
		for after, excused := range map[time.Duration]bool{until - time.Second/2: true, until + time.Second/2: false} {
			late.delivered = map[time.Time]int64{}
			if got := late.explains(facts.Write{Span: span.New(late.held[0].To, late.held[0].To), Seq: 7}, began.Add(after)); got != excused {
				t.Errorf("connectivity %q: probed %v after the hold began: excused %v, expected %v", connectivity, after, got, excused)
			}
		}
	}
}

// A write that was sent long after its way was held up can be the one of several that an API server had done before it saw that they were given up. One that
// comes alone, with itself, with one that was answered, or with those of another node or moment was kept.
func TestLateWriteAmongGivenUpOnes(t *testing.T) {
	says := func(probed time.Time) json.RawMessage {
		message := `[{"keyID":"1","kekID":"kek-1","status":"healthy","lastChecked":"` + contract.FormatTime(probed) + `"}]`
		text, _ := json.Marshal(map[string]any{"status": map[string]any{"conditions": []*history.Condition{{Type: contract.ConditionType("cp-1"), Status: "True", Message: message}}}})
		return text
	}
	for name, c := range map[string]struct {
		node    string
		apart   time.Duration // of the other write from this one
		other   time.Duration // its probe, later than this one's
		code    int
		excused bool
	}{
		"with a later one":            {node: "cp-1", apart: 20 * time.Millisecond, other: time.Second, code: 504, excused: true},
		"with an earlier one":         {node: "cp-1", apart: -80 * time.Millisecond, other: -time.Second, code: 504, excused: true},
		"with itself":                 {node: "cp-1", apart: 20 * time.Millisecond, code: 504},
		"with one that was answered":  {node: "cp-1", apart: 20 * time.Millisecond, other: time.Second, code: 200},
		"with one of another node":    {node: "cp-2", apart: 20 * time.Millisecond, other: time.Second, code: 504},
		"long before one is given up": {node: "cp-1", apart: time.Second, other: time.Second, code: 504},
		"long after one was given up": {node: "cp-1", apart: -time.Second, other: -time.Second, code: 504},
		"alone":                       {node: "cp-3", code: 504},
	} {
		cut := history.Link{From: history.RoleReporter, To: history.RoleAPIServer, State: history.LinkCut}
		_, began := heldUpBy(cut)
		probed, sent := began.Add(3*time.Second), began.Add(8*time.Second)
		request := func(node string, code int, received, probed time.Time) *history.Request {
			return &history.Request{User: contract.ReporterIdentity(node), Verb: "apply", Resource: "kubeapiservers", Name: "cluster", Code: code, Received: received, Body: says(probed)}
		}
		late, _ := heldUpBy(cut, request("cp-1", 200, sent, probed), request(c.node, c.code, sent.Add(c.apart), probed.Add(c.other)))
		w := late.Reporters.Writes("cp-1")[0]
		if len(w.Entries) != 1 {
			t.Fatalf("entries of the late write: %v", w.Entries)
		}
		if got := late.explains(w, probed); got != c.excused {
			t.Errorf("%s: excused %v, expected %v", name, got, c.excused)
		}
	}
}
