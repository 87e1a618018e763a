package main

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/contract"
)

// TestNeverForget: a removed node is cleaned up by the good core, and by the mutant is not.
func TestNeverForget(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	input := func(now time.Time, nodes ...string) core.Input {
		in := core.Input{Now: now, Interval: time.Second, KMSActive: true, Nodes: map[string]time.Time{}}
		in.Observed.Reports = map[string]core.Report{}
		for _, n := range nodes {
			in.Nodes[n] = at.Add(-time.Hour)
		}
		for _, n := range []string{"cp-1", "cp-2"} {
			in.Observed.Reports[n] = core.Report{Entries: []contract.Entry{{KeyID: "1", KEKID: "k", Status: contract.StatusHealthy, LastChecked: at}}}
		}
		return in
	}
	for name, c := range map[string]struct {
		decide func(core.Input, core.Memory) core.Decision
		want   int
	}{"good": {core.Step, 1}, "mutant": {neverForget(), 0}} {
		d := c.decide(input(at, "cp-1", "cp-2"), core.Memory{})
		if !d.Remove.Empty() {
			t.Errorf("%s: removes %v while both nodes are there", name, d.Remove)
		}
		if d = c.decide(input(at.Add(time.Second), "cp-1"), d.Memory); len(d.Remove.Nodes) != c.want {
			t.Errorf("%s: removes %v, want %d", name, d.Remove.Nodes, c.want)
		}
	}
}
