package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// BenchmarkInterval is one interval of a healthy control plane: each node probes and writes once. The history is kept in memory.
func BenchmarkInterval(b *testing.B) {
	for _, ssa := range []store.SSA{store.Real, store.Model} {
		for _, nodes := range []int{3, 30} {
			b.Run(fmt.Sprintf("%s/%d", ssa, nodes), func(b *testing.B) {
				s := scenario.Scenario{Name: "bench", Topology: scenario.Topology{ControlPlanes: nodes}}
				simulation := sim.New(sim.Options{SSA: ssa})
				e, err := simulation.Prepare(context.Background(), backend.Spec{Scenario: s.WithDefaults(), Seed: 1, Log: history.NewLog(nil)})
				if err != nil {
					b.Fatal(err)
				}
				run := e.(backend.Timed).Runtime()
				run.Wait(context.Background(), run.Now().Add(10*time.Second))
				for b.Loop() {
					until := run.Now().Add(simulation.Timing().Interval)
					for run.Now().Before(until) {
						run.Wait(context.Background(), until)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*nodes), "us/node-tick")
				if err := e.Release(context.Background(), false); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
