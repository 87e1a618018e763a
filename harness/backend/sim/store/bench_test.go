package store

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkApply is one reporter's apply to an object of n managers, in the steady state: everybody's own condition, another
// message each time. ns/op of real over that of model is the ratio.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{3, 10, 30, 100, 1000, 3000} {
		for _, ssa := range []SSA{Real, Model} {
			if ssa == Real && n > 100 {
				continue // minutes
			}
			b.Run(fmt.Sprintf("%d/%s", n, ssa), func(b *testing.B) { benchmarkApply(b, n, ssa) })
		}
	}
}

func benchmarkApply(b *testing.B, n int, ssa SSA) {
	f := newFixture(b, Options{SSA: ssa, MaxRequestBytes: 1 << 30})
	manager := func(i int) string { return fmt.Sprintf("kms-health-reporter-cp-%d", i%n) }
	report := func(i int) string {
		return fmt.Sprintf(`[{"keyID":"2","kekID":"kek-9f2c","status":"healthy","lastChecked":%q}]`, start.Add(time.Duration(i)*time.Second).Format(time.RFC3339))
	}
	write := func(i int) {
		f.apply(manager(i), conditions(condition(fmt.Sprintf("KMSHealthReporter_cp-%d", i%n), report(i))))
		f.Compact(f.Revision())
	}
	for i := range n {
		write(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		write(n + i)
	}
}
