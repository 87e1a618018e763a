package facts

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

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
		var events []history.Event
		add := func(s int, kind history.Kind, change func(*history.Event)) {
			e := history.Event{Seq: int64(len(events)), At: start.Add(time.Duration(s) * time.Second), Kind: kind}
			change(&e)
			events = append(events, e)
		}
		process := func(s int, role, node, state string) {
			add(s, history.KindProcess, func(e *history.Event) { e.Process = &history.Process{Role: role, Node: node, State: state} })
		}
		add(0, history.KindRun, func(e *history.Event) {
			e.Run = &history.Run{Timing: contract.Timing{Interval: time.Second}, TakeoverAllowance: time.Second, AggregatorConnectivity: connectivity}
		})
		for _, role := range []string{history.RoleLoadBalancer, history.RoleAggregator} {
			process(1, role, "", history.ProcessStarted)
		}
		process(1, history.RoleAPIServer, "cp-1", history.ProcessStarted)
		process(1, history.RoleAPIServer, "cp-2", history.ProcessStarted)
		process(30, history.RoleLoadBalancer, "", history.ProcessKilled)
		process(40, history.RoleAPIServer, "cp-1", history.ProcessKilled)
		process(50, history.RoleAPIServer, "cp-1", history.ProcessStarted)
		process(52, history.RoleAggregator, "", history.ProcessExited)
		process(53, history.RoleAggregator, "", history.ProcessStarted)
		process(60, history.RoleLoadBalancer, "", history.ProcessStarted)
		process(80, history.RoleAPIServer, "cp-2", history.ProcessKilled)
		reached := New(events).APIServers.reachedBy(connectivity)
		for s, wanted := range want {
			if got := reached.Contains(start.Add(time.Duration(s) * time.Second)); got != wanted {
				t.Errorf("%q: reached after %d s: %v, want %v (%v)", connectivity, s, got, wanted, reached)
			}
		}
	}
}
