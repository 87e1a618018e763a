package swarm_test

import (
	"context"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// BenchmarkSeed is one seed from its drawing to its verdict, with production timing.
func BenchmarkSeed(b *testing.B) {
	all := swarm.NewSummary(swarm.Range{From: 1, To: int64(b.N)}, nil)
	err := swarm.Run(context.Background(), swarm.Options{From: 1, To: int64(b.N), Jobs: 1, Plan: swarm.Plan{Length: time.Hour, Timing: contract.DefaultTiming()}, Out: b.TempDir(), Done: all.Add,
		Backend: virtual.New(virtual.Options{Timing: contract.DefaultTiming()})})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(all.VirtualSeconds/b.Elapsed().Seconds(), "x-real-time")
	b.ReportMetric(float64(len(all.Failed)), "failed")
}
