package sim

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// LocalTiming is that of the local backend, so that scenarios which name seconds mean the same.
func LocalTiming() contract.Timing {
	return contract.Timing{Interval: time.Second, Jitter: 100 * time.Millisecond, ProbeTimeout: 900 * time.Millisecond,
		WriteTimeout: time.Second, AggregatorLatency: time.Second}
}

// ProductionTiming is what the flags of reporter and aggregator default to.
func ProductionTiming() contract.Timing { return contract.DefaultTiming() }

// election is the flags of the aggregators' leader election.
type election struct{ lease, renew, retry time.Duration }

// localElection are the flags that the local backend gives its aggregators, productionElection their defaults.
func localElection() election {
	return election{lease: 2 * time.Second, renew: 1500 * time.Millisecond, retry: 250 * time.Millisecond}
}

func productionElection() election {
	return election{lease: 15 * time.Second, renew: 10 * time.Second, retry: 2 * time.Second}
}

// electionFor is the flags that go with a timing: who shortens the interval shortens the lease.
func electionFor(t contract.Timing) election {
	if t.Interval < contract.PreciseInterval {
		return localElection()
	}
	return productionElection()
}

// jitter is client-go's, of a standby that tries to acquire.
func (e election) jitter() time.Duration { return e.retry * 6 / 5 }

// takeover is what an aggregator may need until it is in charge: the lease of its predecessor, the standby's next try, a dial that
// is not answered, and the first lists.
func (e election) takeover() time.Duration {
	return e.lease + e.retry + e.jitter() + 2450*time.Millisecond
}
