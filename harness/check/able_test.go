package check

import (
	"testing"
	"time"

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
		v := newFacts(w.finish(50 * time.Second))
		middle := span{v.complete.from.Add(35 * time.Second), v.complete.from.Add(36 * time.Second)}
		if judged := v.able.inCharge.covers(middle); judged != c.judged {
			t.Errorf("%s to %s %s: the aggregator is judged %v, expected %v; it is in charge %v", c.from, c.to, c.state, judged, c.judged, v.able.inCharge)
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
		v := newFacts(w.finish(20 * time.Second))
		if able := v.able.reporter("cp-1"); len(able) != c.spans {
			t.Errorf("%s for no time: the reporter could write in %v, expected %d spans", c.state, able, c.spans)
		}
	}
}

// Without DNS a reporter that knows the load balancer by a name is not judged, one on loopback is: localhost needs no resolver.
func TestDNSExcusesReportersThatNeedIt(t *testing.T) {
	for _, c := range []struct {
		connectivity, state string
		judged              bool
	}{
		{history.ConnectService, history.LinkCut, false}, {history.ConnectService, history.LinkServFail, false},
		{history.ConnectService, history.LinkNXDomain, false}, {history.ConnectService, history.LinkStale, false},
		{history.ConnectLoopback, history.LinkCut, true}, {history.ConnectLoopback, history.LinkNXDomain, true},
	} {
		w := newWorld(1, "1")
		w.run.Connectivity = c.connectivity
		dns := func(state string) func(*world) {
			return func(w *world) {
				w.record("backend", &history.Link{From: history.RoleReporter, To: history.DNS, Node: "cp-1", State: state})
			}
		}
		w.at(10*time.Second, dns(c.state)).at(40*time.Second, dns(history.LinkOK))
		w.boot()
		v := newFacts(w.finish(50 * time.Second))
		middle := span{v.complete.from.Add(35 * time.Second), v.complete.from.Add(36 * time.Second)}
		if judged := v.able.reporter("cp-1").covers(middle); judged != c.judged {
			t.Errorf("%s, DNS %s: the reporter is judged %v, expected %v", c.connectivity, c.state, judged, c.judged)
		}
		if held := heldBack(v, "cp-1"); len(held) > 0 {
			t.Errorf("%s, DNS %s: writes may be late in %v, expected that no query holds one back", c.connectivity, c.state, held)
		}
	}
}
