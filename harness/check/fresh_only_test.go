package check

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// A throttled or lossy link delivers what its senders have given up, any number of times. A link that loses everything delivers one
// request late; a stale list of the load balancer and slow handshakes hold nothing back.
func TestLateWritesOverImpairedLinks(t *testing.T) {
	for state, excused := range map[string]bool{
		history.LinkOK: false, history.LinkThrottled: true, history.LinkLossy: true, history.LinkCut: false, history.LinkSlowHandshake: false, history.LinkStale: false,
	} {
		w := newWorld(3, "1")
		entriesAs(10*sec, 20*sec, func(w *world, e *wire) { e.LastChecked = contract.FormatTime(w.now.Add(-4 * sec)) })(w)
		link := func(state string) func(*world) {
			return func(w *world) {
				w.record("backend", &history.Link{From: history.RoleReporter, To: history.RoleAPIServer, Node: "cp-2", State: state, Delay: time.Second})
			}
		}
		w.at(9*sec, link(state)).at(21*sec, link(history.LinkOK))
		w.boot()
		if f := judgeFreshOnly(newFacts(w.finish(30 * time.Second))); (len(f.Violations) == 0) != excused {
			t.Errorf("%s: late writes excused: %v, expected %v; %v", state, len(f.Violations) == 0, excused, f.Violations)
		}
	}
}

// A way that is held up delivers one write late: what was under way or, over a mute link, the first that was sent after that. A write of a later tick was
// kept.
func TestOneLateWriteOfAHold(t *testing.T) {
	for state, first := range map[string]bool{history.LinkMute: true, history.LinkCut: false} {
		w := newWorld(1, "1")
		w.at(5*sec, func(w *world) {
			w.record("backend", &history.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer, State: state})
		})
		w.boot()
		v := newFacts(w.finish(10 * sec))
		began := v.network.links[0].at
		held := spans{{began, began.Add(8 * sec)}}
		for after, excused := range map[time.Duration]bool{-sec / 2: true, sec * 4 / 5: first, 3 * sec: false} {
			delivered := map[time.Time]int64{}
			late := write{from: held[0].to, seq: 7}
			if got := wasUnderWay(v, "cp-1", late, began.Add(after), held, delivered); got != excused {
				t.Errorf("%s: probed %v after the hold began: excused %v, expected %v", state, after, got, excused)
			}
			if late.seq++; excused && wasUnderWay(v, "cp-1", late, began.Add(after), held, delivered) {
				t.Errorf("%s: probed %v after the hold began: a second write is excused as well", state, after)
			}
		}
	}
}

// The aggregator writes the reports of streams to one connection until it gives it up.
func TestLateWriteOfTheAggregator(t *testing.T) {
	w := newWorld(1, "1")
	w.at(5*sec, func(w *world) {
		w.record("backend", &history.Link{From: history.RoleAggregator, To: history.RoleLoadBalancer, State: history.LinkCut})
	})
	w.boot()
	v := newFacts(w.finish(10 * sec))
	began := v.network.links[0].at
	held := spans{{began, began.Add(8 * sec)}}
	for connectivity, until := range map[string]time.Duration{"": 0, history.ConnectStream: aggregatorRedials} {
		v.run.Connectivity = connectivity
		for after, excused := range map[time.Duration]bool{until - sec/2: true, until + sec/2: false} {
			if got := wasUnderWay(v, "cp-1", write{from: held[0].to, seq: 7}, began.Add(after), held, map[time.Time]int64{}); got != excused {
				t.Errorf("connectivity %q: probed %v after the hold began: excused %v, expected %v", connectivity, after, got, excused)
			}
		}
	}
}

// A write that was sent long after its way was held up can be the one of several that an API server had done before it saw that they were given up. One that
// comes alone, with itself, with one that was answered, or with those of another node or moment was kept.
func TestLateWriteAmongGivenUpOnes(t *testing.T) {
	w := newWorld(1, "1")
	w.at(5*sec, func(w *world) {
		w.record("backend", &history.Link{From: history.RoleReporter, To: history.RoleAPIServer, State: history.LinkCut})
	})
	w.boot()
	events := w.finish(20 * sec)
	says := func(probed time.Time) body {
		text, _ := json.Marshal(map[string]any{"status": map[string]any{"conditions": []history.Condition{
			{Type: contract.ConditionType("cp-1"), Status: "True", Message: encode([]wire{{"1", "kek-1", "healthy", contract.FormatTime(probed), ""}})}}}})
		return readBody(text)
	}
	for name, c := range map[string]struct {
		node    string
		apart   time.Duration // of the other write from this one
		other   time.Duration // its probe, later than this one's
		code    int
		excused bool
	}{
		"with a later one":            {node: "cp-1", apart: 20 * milli, other: sec, code: 504, excused: true},
		"with an earlier one":         {node: "cp-1", apart: -80 * milli, other: -sec, code: 504, excused: true},
		"with itself":                 {node: "cp-1", apart: 20 * milli, code: 504},
		"with one that was answered":  {node: "cp-1", apart: 20 * milli, other: sec, code: 200},
		"with one of another node":    {node: "cp-2", apart: 20 * milli, other: sec, code: 504},
		"long before one is given up": {node: "cp-1", apart: sec, other: sec, code: 504},
		"long after one was given up": {node: "cp-1", apart: -sec, other: -sec, code: 504},
		"alone":                       {node: "cp-3", code: 504},
	} {
		v := newFacts(events)
		began := v.network.links[0].at
		held := spans{{began, began.Add(8 * sec)}}
		probed := began.Add(3 * sec)
		late := write{from: held[0].to, seq: 7, entries: says(probed).reportOf("cp-1")}
		if len(late.entries) != 1 {
			t.Fatalf("entries of the late write: %v", late.entries)
		}
		v.requests.requestsOf[c.node] = append(v.requests.requestsOf[c.node], len(v.requests.all))
		v.requests.all = append(v.requests.all, request{Request: &history.Request{Code: c.code}, write: true, onCR: true, node: c.node,
			received: late.from.Add(c.apart), body: says(probed.Add(c.other))})
		if got := wasUnderWay(v, "cp-1", late, probed, held, map[time.Time]int64{}); got != c.excused {
			t.Errorf("%s: excused %v, expected %v", name, got, c.excused)
		}
	}
}
