package virtual_test

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// BenchmarkVirtual is three nodes in which nothing goes wrong, from boot to verdict: how many times faster than real time a processor is.
func BenchmarkVirtual(b *testing.B) {
	for name, c := range map[string]struct {
		timing contract.Timing
		wait   time.Duration
	}{"interval=1s": {cluster.Timing(), 10 * time.Minute}, "interval=30s": {contract.DefaultTiming(), time.Hour}} {
		b.Run(name, func(b *testing.B) {
			parser, err := standard.Parser()
			if err != nil {
				b.Fatal(err)
			}
			s, err := parser.Parse("calm.yaml", fmt.Appendf(nil, "apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata: {name: calm, title: Nothing goes wrong., area: scale}\nspec: {steps: [{rotate: {}}, {wait: %ds}]}\n", int(c.wait.Seconds())))
			if err != nil {
				b.Fatal(err)
			}
			began := processorTime(b)
			for b.Loop() {
				r := engine.Execute(b.Context(), virtual.New(virtual.Options{Timing: c.timing}), s, engine.Execution{History: io.Discard, Options: engine.Options{Faults: standard.Faults{}, Seed: 1}})
				if r.Status != result.Passed {
					b.Fatal(r.Text())
				}
			}
			b.ReportMetric(float64(b.N)*c.wait.Seconds()/(processorTime(b)-began).Seconds(), "x-real-time")
		})
	}
}

// processorTime is what this process used until now.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
