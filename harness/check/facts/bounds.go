package facts

import (
	"cmp"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Bounds are the times of the contract in one run. Of its bounds only Latency includes the tolerance.
type Bounds struct {
	contract.Timing
	// Tolerance is added to each bound: what a backend takes, and what its records leave open.
	Tolerance time.Duration
	// Takeover is for how long an aggregator may not be in charge after a disturbance.
	Takeover time.Duration
}

func boundsOf(run *history.Run) Bounds {
	return Bounds{run.Timing, run.Tolerance, cmp.Or(run.TakeoverAllowance, contract.StaleAfter(run.Timing.Interval))}
}

// Latency is A and the tolerance.
func (b Bounds) Latency() time.Duration { return b.AggregatorLatency + b.Tolerance }

// attempt is the longest time from one try of a reporter to write until it has given up the next one.
func (b Bounds) attempt() time.Duration { return b.Interval + b.Jitter + b.WriteTimeout }
