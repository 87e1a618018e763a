package virtual

import (
	"log/slog"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/metrics"
)

// The clock of a node is that of its reporter, aggregators have one of their own, and plugins have the true time. As on
// any machine, setting a clock does not change what is measured by it.
func TestWrongClocks(t *testing.T) {
	bubble.Test(t, 1, func(t *testing.T) {
		for _, c := range []struct {
			who   history.Process
			ahead time.Duration
		}{
			{history.Process{Role: history.RoleReporter, Node: "cp-1"}, -time.Hour},
			{history.Process{Role: history.RoleReporter, Node: "cp-2"}, 0},
			{history.Process{Role: history.RolePlugin, Node: "cp-1"}, 0},
			{history.Process{Role: history.RoleAggregator, Node: "cp-1"}, time.Minute},
		} {
			m := newMachine(network.New(1), 1, nil)
			m.SetClock("", "cp-1", -time.Hour)
			m.SetClock(history.RoleAggregator, "", time.Minute)
			clock := m.clockOf(c.who)
			now := time.Now()
			if ahead := clock.Now().Round(0).Sub(now); ahead != c.ahead {
				t.Errorf("the clock of %s on %s is %v ahead, expected %v", c.who.Role, c.who.Node, ahead, c.ahead)
			}
			began, right := clock.Now(), time.Now()
			m.SetClock("", c.who.Node, 3*time.Hour)
			m.SetClock(history.RoleAggregator, "", 2*time.Hour)
			clock.Sleep(time.Second)
			if took, measured, since := time.Since(right), clock.Now().Sub(began), clock.Since(began); took != time.Second || measured != took || since != took {
				t.Errorf("a second of %s on %s, whose clock was set, took %v, and it measured %v and %v", c.who.Role, c.who.Node, took, measured, since)
			}
		}
	})
}

// A reporter whose clock is set is as alive as before: a kubelet that believed otherwise would restart it.
func TestAliveWithAWrongClock(t *testing.T) {
	bubble.Test(t, 1, func(t *testing.T) {
		o := reporter.NewObserver(slog.New(slog.DiscardHandler), metrics.New("cp-1", []string{"1"}))
		o.TickBegan(setAhead(time.Now(), 0))
		for after, alive := range map[time.Duration]bool{time.Second: true, time.Minute: false} {
			for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
				if got := o.Alive(setAhead(time.Now().Add(after), ahead), 4*time.Second); got != alive {
					t.Errorf("%v after a tick, with a clock that is %v ahead: alive %v, expected %v", after, ahead, got, alive)
				}
			}
		}
	})
}
