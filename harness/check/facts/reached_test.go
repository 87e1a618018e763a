package facts

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// script makes a history.
type script struct {
	start  time.Time
	events []history.Event
}

func (r *script) add(s int, kind history.Kind, change func(*history.Event)) {
	e := history.Event{Seq: int64(len(r.events)), At: r.start.Add(time.Duration(s) * time.Second), Kind: kind}
	change(&e)
	r.events = append(r.events, e)
}

func (r *script) run(run *history.Run) {
	run.Timing, run.TakeoverAllowance = contract.Timing{Interval: time.Second}, time.Second
	r.add(0, history.KindRun, func(e *history.Event) { e.Run = run })
}

func (r *script) process(s int, role, node, state string) {
	r.add(s, history.KindProcess, func(e *history.Event) { e.Process = &history.Process{Role: role, Node: node, State: state} })
}

// TestReachedBy: without a load balancer from 30 s to 60 s, and without the API server of cp-1 from 40 s to 50 s, the aggregator still reaches what its
// connectivity leads to. One that started in the outage knows a list, and no API server that is advertised.
func TestReachedBy(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for connectivity, want := range map[string]map[int]bool{
		"":                      {20: true, 35: false, 45: false, 55: false, 70: true},
		history.ConnectLoopback: {20: true, 35: true, 45: false, 55: true, 70: true},
		history.ConnectStatic:   {20: true, 35: true, 45: true, 55: true, 70: true},
		history.ConnectAltSvc:   {20: true, 35: true, 45: true, 55: false, 70: true},
	} {
		r := script{start: start}
		r.run(&history.Run{AggregatorConnectivity: connectivity})
		for _, role := range []string{history.RoleLoadBalancer, history.RoleAggregator} {
			r.process(1, role, "", history.ProcessStarted)
		}
		r.process(1, history.RoleAPIServer, "cp-1", history.ProcessStarted)
		r.process(1, history.RoleAPIServer, "cp-2", history.ProcessStarted)
		r.process(30, history.RoleLoadBalancer, "", history.ProcessKilled)
		r.process(40, history.RoleAPIServer, "cp-1", history.ProcessKilled)
		r.process(50, history.RoleAPIServer, "cp-1", history.ProcessStarted)
		r.process(52, history.RoleAggregator, "", history.ProcessExited)
		r.process(53, history.RoleAggregator, "", history.ProcessStarted)
		r.process(60, history.RoleLoadBalancer, "", history.ProcessStarted)
		r.process(80, history.RoleAPIServer, "cp-2", history.ProcessKilled)
		reached := New(r.events).APIServers.reachedBy(connectivity)
		for s, wanted := range want {
			if got := reached.Contains(start.Add(time.Duration(s) * time.Second)); got != wanted {
				t.Errorf("%q: reached after %d s: %v, want %v (%v)", connectivity, s, got, wanted, reached)
			}
		}
	}
}

// TestUnserved: the API server of cp-1 takes connections and cannot serve, and the load balancer gives the aggregator that one several times. It has to be
// right a takeover after it was answered, and after some takeovers whatever it tried.
func TestUnserved(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		answered int
		want     map[int]bool
	}{
		"answered":       {34, map[int]bool{29: true, 33: false, 37: true, 50: true}},
		"never answered": {0, map[int]bool{29: true, 33: false, 35: false, 38: true}},
	} {
		r := script{start: start}
		r.run(&history.Run{})
		r.process(1, history.RoleLoadBalancer, "", history.ProcessStarted)
		r.process(1, history.RoleAggregator, "", history.ProcessStarted)
		for _, node := range []string{"cp-1", "cp-2"} {
			r.process(1, history.RoleAPIServer, node, history.ProcessStarted)
		}
		r.add(30, history.KindLink, func(e *history.Event) {
			e.Link = &history.Link{From: history.RoleAPIServer, To: history.RoleEtcd, Node: "cp-1", State: history.LinkCut}
		})
		for s := 20; s < 60; s++ {
			code := 200
			if s > 30 && (c.answered == 0 || s < c.answered) {
				code = 504
			}
			r.add(s, history.KindRequest, func(e *history.Event) {
				e.Request = &history.Request{User: contract.AggregatorIdentity, Verb: "get", Resource: "nodes", Code: code}
			})
		}
		behind := New(r.events).Aggregator.Behind
		for s, wanted := range c.want {
			if got := behind.Contains(start.Add(time.Duration(s)*time.Second + time.Second/2)); got != wanted {
				t.Errorf("%s: judged after %d s: %v, want %v (%v)", name, s, got, wanted, behind)
			}
		}
	}
}
