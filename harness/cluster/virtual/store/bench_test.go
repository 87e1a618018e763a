package store

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkApply is one reporter's apply to an object that n of them share, in the steady state: everybody has its own
// condition, with another message each time.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{3, 10, 30, 100} {
		b.Run(fmt.Sprintf("managers=%d", n), func(b *testing.B) {
			write := reporters(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				write(i)
			}
		})
	}
}

// reporters have each written once; what is returned makes the next write.
func reporters(b *testing.B, n int) func(int) {
	f := newFixture(b)
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
