package scale_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	aggregator "github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/swarm/scale"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, o scale.Options) scale.Result {
	t.Helper()
	o.Progress, o.Now = func(scale.Result) {}, time.Now
	o.Sim.SSA, o.Sim.Timing = store.Model, sim.ProductionTiming()
	r, err := scale.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTwentyNodesForTwoHours(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	r := run(t, scale.Options{Nodes: 20, Length: 2 * time.Hour, Seed: 1})
	if !r.OK() || len(r.Detected) != 2 || len(r.Recovered) != 2 || r.Refused > 0 || r.Ticks < 20*230 {
		t.Errorf("%v %q", r, r.Problems)
	}
}

// An aggregator that names nobody is the known-bad subject.
func TestFaultThatIsNotNamed(t *testing.T) {
	blind := func(in aggregator.Input, m aggregator.Memory) aggregator.Decision {
		d := aggregator.Step(in, m)
		for i := range d.Rollups {
			d.Rollups[i].Message = ""
		}
		return d
	}
	if r := run(t, scale.Options{Nodes: 5, Length: time.Hour, Seed: 1, Sim: sim.Options{Cores: sim.Cores{Decide: blind}}}); r.OK() {
		t.Errorf("passed: %v", r)
	}
}

func TestLimitOfEtcdIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	r := run(t, scale.Options{Nodes: 30, Length: 10 * time.Minute, Seed: 1, Sim: sim.Options{MaxRequestBytes: 12000}})
	if r.TooLarge < 5 || r.TooLarge > 29 || r.Refused == 0 {
		t.Errorf("limit met at %d nodes, %d writes refused: %v", r.TooLarge, r.Refused, r)
	}
}
