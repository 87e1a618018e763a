package facts

import (
	"cmp"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Bounds are the times of the contract in one run. Of its bounds only Latency includes the tolerance: an invariant adds
// Tolerance once to each sum, not to each term of it.
type Bounds struct {
	contract.Timing
	// Tolerance is added to each bound for what the backend takes and for what its records leave open: 500 ms on local,
	// none on sim. It comes from the run, so that a saved history is judged by the tolerance with which it was recorded.
	Tolerance time.Duration
	// Takeover is for how long an aggregator may not be in charge after a disturbance. A lease that was not released has
	// to expire first, and reconnecting clients back off. The default is the staleness bound, 4 I.
	Takeover time.Duration
}

func boundsOf(run *history.Run) Bounds {
	return Bounds{run.Timing, run.Tolerance, cmp.Or(run.TakeoverAllowance, contract.StaleAfter(run.Timing.Interval))}
}

// Latency is A and the tolerance.
func (b Bounds) Latency() time.Duration { return b.AggregatorLatency + b.Tolerance }

// attempt is the longest time from one try of a reporter to write until it has given up the next one: I + J until the next tick, and W for
// the try.
func (b Bounds) attempt() time.Duration { return b.Interval + b.Jitter + b.WriteTimeout }
