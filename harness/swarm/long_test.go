package swarm_test

import (
	"context"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// Hours of faults are a valid file, whatever the interval; they fill the time, and seeds differ in how much happens.
func TestDrawHours(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	parser := parser(t)
	for name, p := range map[string]swarm.Plan{
		"some minutes":          {Length: 10 * time.Minute},
		"hours in production's": {Length: 6 * time.Hour, Timing: contract.DefaultTiming()},
	} {
		least, most := 1<<30, 0
		for seed := range int64(10) {
			s := drawn(t, parser, p, seed)
			least, most = min(least, len(s.Actions())), max(most, len(s.Actions()))
		}
		if most < 5*least || most < 100 {
			t.Errorf("%s: seeds have %d to %d actions, expected calm ones and storms", name, least, most)
		}
	}
}

// An almost calm seed does something, too: these drew nothing but waits.
func TestDrawActs(t *testing.T) {
	p := swarm.Plan{Length: time.Hour, Timing: contract.DefaultTiming()}
	for _, seed := range []int64{35, 93, 156, 168, 274, 299} {
		if len(p.Scenario(seed).Actions()) == 0 {
			t.Errorf("seed %d does nothing", seed)
		}
	}
}

// What is simulated is as long as it should be, and kinds of faults that a seed does not have are left out.
func TestHours(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	s := swarm.NewSummary(swarm.Range{From: 1, To: 1}, nil)
	err := swarm.Run(context.Background(), swarm.Options{From: 1, To: 1, Out: t.TempDir(), Done: s.Add, Plan: swarm.Plan{Length: 10 * time.Minute},
		Backend: virtual.New(virtual.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if least := 600.0; s.VirtualSeconds < least || s.VirtualSeconds > 2*least || s.Passed != 1 {
		t.Errorf("%v s of virtual time, expected %v at least; %d of 1 passed\n%s", s.VirtualSeconds, least, s.Passed, text(t, s))
	}
}

// The last steps of every drawn scenario say what must be well, and that it stays.
func TestLiveness(t *testing.T) {
	expected := map[scenario.Mode]int{}
	scenario.Walk(swarm.Plan{}.Scenario(1).Steps[1:], func(step scenario.Step) {
		if step.Expect != nil {
			expected[step.Expect.Mode]++
		}
	})
	if expected[scenario.ModeWithin] < 4 || expected[scenario.ModeHolds] != 1 {
		t.Errorf("%v", expected)
	}
}
