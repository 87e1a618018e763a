package store

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkApply is one reporter's apply to an object that n of them share, in the steady state: everybody has its own
// condition, with another message each time. The ratio is the time of the real merge code, measured in the same run.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{3, 10, 30, 100} {
		b.Run(fmt.Sprintf("managers=%d", n), func(b *testing.B) {
			const applies = 20
			write := reporters(b, n, Real)
			began := time.Now()
			for i := range applies {
				write(i)
			}
			real := float64(time.Since(began).Nanoseconds()) / applies
			model := measure(b, n)
			b.ReportMetric(real, "real-ns/op")
			b.ReportMetric(real/model, "real/model")
		})
	}
	for _, n := range []int{300, 1000, 1800} { // where the real code takes a second or so
		b.Run(fmt.Sprintf("managers=%d", n), func(b *testing.B) { measure(b, n) })
	}
}

// measure is the time of an apply by the model, in nanoseconds.
func measure(b *testing.B, n int) float64 {
	write := reporters(b, n, Model)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		write(i)
	}
	return float64(b.Elapsed().Nanoseconds()) / float64(b.N)
}

// reporters have each written once; what is returned makes the next write.
func reporters(b *testing.B, n int, ssa SSA) func(int) {
	f := newFixture(b, Options{SSA: ssa})
	write := func(i int) {
		f.apply(fmt.Sprintf("kms-health-reporter-cp-%d", i%n), conditions(condition(fmt.Sprintf("KMSHealthReporter_cp-%d", i%n),
			fmt.Sprintf(`[{"keyID":"2","kekID":"kek-9f2c","status":"healthy","lastChecked":%q}]`, f.now.Format(time.RFC3339)))))
		f.Compact(f.Revision())
	}
	for i := range n {
		write(i)
	}
	return write
}
