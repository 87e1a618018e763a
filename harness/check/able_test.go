package check

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// An aggregator need not leave an API server that is only slow, so its latency is not judged while one is so slow that the bound cannot
// be kept. One that is cut off is left for another, and that is judged.
func TestSlowAPIServerExcusesTheAggregator(t *testing.T) {
	for _, c := range []struct {
		from, to, state string
		delay           time.Duration
		judged          bool
	}{
		{history.RoleLoadBalancer, history.RoleAPIServer, history.LinkSlow, 200 * time.Millisecond, false},
		{history.RoleAPIServer, history.RoleEtcd, history.LinkSlow, 200 * time.Millisecond, false},
		{history.RoleAPIServer, history.RoleEtcd, history.LinkSlow, 0, false}, // not known
		{history.RoleLoadBalancer, history.RoleAPIServer, history.LinkSlow, 50 * time.Millisecond, true},
		{history.RoleReporter, history.RoleAPIServer, history.LinkSlow, 200 * time.Millisecond, true},
		{history.RoleLoadBalancer, history.RoleAPIServer, history.LinkCut, 0, true},
		{history.RoleLoadBalancer, history.RoleAPIServer, history.LinkLossy, 0, false},
		{history.RoleLoadBalancer, history.RoleAPIServer, history.LinkThrottled, 0, false},
		{history.RoleAPIServer, history.RoleEtcd, history.LinkSlowHandshake, time.Second, false},
		{history.RoleReporter, history.RoleAPIServer, history.LinkLossy, 0, true},
	} {
		w := newWorld(3, "1")
		link := func(state string) func(*world) {
			return func(w *world) {
				w.record("backend", &history.Link{From: c.from, To: c.to, Node: "cp-1", State: state, Delay: c.delay})
			}
		}
		for _, n := range []string{"cp-1", "cp-2"} {
			w.at(0, func(w *world) { w.process(history.RoleAPIServer, n, "", history.ProcessReady) })
		}
		w.at(10*time.Second, link(c.state)).at(40*time.Second, link(history.LinkOK))
		w.boot()
		v := facts.New(w.finish(50 * time.Second))
		middle := span.New(v.Period.From.Add(35*time.Second), v.Period.From.Add(36*time.Second))
		if judged := v.Aggregator.InCharge.Covers(middle); judged != c.judged {
			t.Errorf("%s to %s %s: the aggregator is judged %v, expected %v; it is in charge %v", c.from, c.to, c.state, judged, c.judged, v.Aggregator.InCharge)
		}
	}
}

// A reset that is over at once breaks what is under way all the same: a reporter may lose a write to it, and is judged anew from then on.
func TestGlitchBreaksWhatIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		state string
		spans int
	}{{history.LinkReset, 2}, {history.LinkOK, 1}} {
		w := newWorld(1, "1")
		w.at(10*time.Second, func(w *world) {
			for _, state := range []string{c.state, history.LinkOK} {
				w.record("backend", &history.Link{From: history.RoleReporter, To: history.RoleAPIServer, Node: "cp-1", State: state})
			}
		})
		w.boot()
		v := facts.New(w.finish(20 * time.Second))
		if able := v.Reporters.Able("cp-1"); len(able) != c.spans {
			t.Errorf("%s for no time: the reporter could write in %v, expected %d spans", c.state, able, c.spans)
		}
	}
}
