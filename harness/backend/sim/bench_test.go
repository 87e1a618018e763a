package sim_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// BenchmarkInterval is one interval of a healthy control plane with production timing: each node probes and writes once. The history is
// kept and encoded as that of a seed; from 300 nodes on, it is what scale runs record. No etcd would take an object with 3,000 reports.
// Memory is managed as by kmsharness simulate.
func BenchmarkInterval(b *testing.B) {
	defer sim.SpareCollector()()
	for _, ssa := range []store.SSA{store.Real, store.Model} {
		for _, nodes := range []int{3, 30, 300, 3000} {
			if ssa == store.Real && nodes > 30 {
				continue // minutes: the merge code's cost grows with the square
			}
			b.Run(fmt.Sprintf("%s/%d", ssa, nodes), func(b *testing.B) {
				s := scenario.Scenario{Name: "bench", Topology: scenario.Topology{ControlPlanes: nodes}}
				log, large := history.NewLog(io.Discard), nodes >= 300
				if large {
					log = history.NewStream()
				}
				simulation := sim.New(sim.Options{SSA: ssa, Timing: sim.ProductionTiming(), Changes: large, MaxRequestBytes: 64 << 20, CPUs: sim.Unlimited})
				e, err := simulation.Prepare(context.Background(), backend.Spec{Scenario: s.WithDefaults(), Seed: 1, Log: log})
				if err != nil {
					b.Fatal(err)
				}
				run := e.(backend.Timed).Runtime()
				pass := func(d time.Duration) {
					until := run.Now().Add(d)
					for run.Now().Before(until) {
						run.Wait(context.Background(), until)
					}
				}
				pass(2 * simulation.Timing().Interval)
				for b.Loop() {
					pass(simulation.Timing().Interval)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*nodes), "us/node-tick")
				b.ReportMetric(simulation.Timing().Interval.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "x-real-time")
				if err := e.Release(context.Background(), false); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
