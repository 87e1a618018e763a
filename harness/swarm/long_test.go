package swarm_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// Hours of faults are a valid file, whatever the interval; they fill the time, and seeds differ in how much happens.
func TestDrawHours(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]swarm.Plan{
		"some minutes":          {Length: 10 * time.Minute},
		"hours in production's": {Length: 6 * time.Hour, Timing: contract.DefaultTiming()},
	} {
		least, most := 1<<30, 0
		for seed := range int64(10) {
			text := p.Draw(seed)
			if !bytes.Equal(text, p.Draw(seed)) {
				t.Fatalf("%s: seed %d gives two files", name, seed)
			}
			s, err := parser.Parse(swarm.Name(seed)+".yaml", text)
			if err != nil {
				t.Fatalf("%s: seed %d: %v", name, seed, err)
			}
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
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range []int64{35, 93, 156, 168, 274, 299} {
		s, err := parser.Parse(swarm.Name(seed)+".yaml", p.Draw(seed))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(s.Actions()) == 0 {
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
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parser.Parse(swarm.Name(1)+".yaml", swarm.Draw(1))
	if err != nil {
		t.Fatal(err)
	}
	expected := map[scenario.Mode]int{}
	scenario.Walk(s.Steps[1:], func(step scenario.Step) {
		if step.Expect != nil {
			expected[step.Expect.Mode]++
		}
	})
	if expected[scenario.ModeWithin] < 4 || expected[scenario.ModeHolds] != 1 {
		t.Errorf("%v", expected)
	}
}
