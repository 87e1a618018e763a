package virtual

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/history"
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
