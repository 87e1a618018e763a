package contract

import (
	"errors"
	"fmt"
	"time"
)

// Timing is every duration of the contract in one place. The bounds that a user may rely on are methods, so that no
// component can configure them apart from their parts.
type Timing struct {
	// Interval (I) between two probes and writes of one reporter.
	Interval time.Duration `json:"interval"`
	// Jitter (J) is the most by which one tick is moved, at most a tenth of the interval: enough that replicas do
	// not write in lockstep, little enough that the bounds stay useful.
	Jitter time.Duration `json:"jitter"`
	// ProbeTimeout (R) is each plugin's own deadline. Probes are concurrent, so a tick costs one R, not their sum.
	ProbeTimeout time.Duration `json:"probeTimeout"`
	// WriteTimeout (W) of the one apply of a tick. Never longer than the interval: a write that outlives its tick
	// would be queueing.
	WriteTimeout time.Duration `json:"writeTimeout"`
	// AggregatorLatency (A) is the most from a visible change of a report to the changed rollup.
	AggregatorLatency time.Duration `json:"aggregatorLatency"`
	// BackOff is in how many intervals a reporter calls a plugin once that fails again and again; 0: in each. It writes in each all the same. The
	// enhancement asks for back-off, and this project decided against it: only reporters of others have one, SourceBackOff.
	BackOff int `json:"backOff,omitempty"`
}

// SourceBackOff is the most that a back-off which doubles may reach: with twice as much the report would grow stale.
const SourceBackOff = 2

// DefaultTiming is what the flags default to in production.
func DefaultTiming() Timing {
	return Timing{
		Interval:          30 * time.Second,
		Jitter:            3 * time.Second,
		ProbeTimeout:      5 * time.Second,
		WriteTimeout:      10 * time.Second,
		AggregatorLatency: time.Second,
	}
}

// Validate says what is wrong with t, all problems at once.
func (t Timing) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(t.Interval > 0, "interval %v: must be positive", t.Interval)
	check(t.Jitter >= 0 && t.Jitter <= t.Interval/10, "jitter %v: must be 0 to a tenth of the interval %v", t.Jitter, t.Interval)
	check(t.ProbeTimeout > 0 && t.ProbeTimeout <= t.Interval, "probe timeout %v: must be positive and at most the interval %v", t.ProbeTimeout, t.Interval)
	check(t.WriteTimeout > 0 && t.WriteTimeout <= t.Interval, "write timeout %v: must be positive and at most the interval %v", t.WriteTimeout, t.Interval)
	check(t.AggregatorLatency > 0 && t.AggregatorLatency <= time.Second, "aggregator latency %v: must be positive and at most 1s", t.AggregatorLatency)
	return errors.Join(errs...)
}

// DialTimeout is how long a connection may take: W/4. A write that meets a silent API server behind a load balancer has three quarters of its time
// left for the others.
func (t Timing) DialTimeout() time.Duration { return t.WriteTimeout / 4 }

// DetectionBound is the most from a plugin's first failure to a rollup that shows it: I + J + R + W + A.
func (t Timing) DetectionBound() time.Duration {
	return t.Interval + t.Jitter + t.ProbeTimeout + t.WriteTimeout + t.AggregatorLatency
}

// RecoveryBound is the most from a plugin's recovery to a rollup that shows it; the same sum, and the back-off.
func (t Timing) RecoveryBound() time.Duration { return t.DetectionBound() + t.BackedOff(StatusError) }

// BackedOff is what the back-off adds to an interval where a plugin has a status.
func (t Timing) BackedOff(s Status) time.Duration {
	if s == StatusHealthy {
		return 0
	}
	return time.Duration(max(t.BackOff, 1)-1) * (t.Interval + t.Jitter)
}

// StaleBound is the most from a reporter's last successful write to a rollup that is Unknown or worse: 4 I + A.
func (t Timing) StaleBound() time.Duration { return StaleAfter(t.Interval) + t.AggregatorLatency }

// CleanupBound is the most that a gone node's condition outlives its writer: 4 I + A.
func (t Timing) CleanupBound() time.Duration { return t.StaleBound() }

// CadenceMax is the most between two writes of a reporter that can write: I + J + R + W.
func (t Timing) CadenceMax() time.Duration {
	return t.Interval + t.Jitter + t.ProbeTimeout + t.WriteTimeout
}

// CadenceMin is the least between two ticks of one reporter: I − J.
func (t Timing) CadenceMin() time.Duration { return t.Interval - t.Jitter }

// MaxProbeAge is the oldest probe that a write may carry: one interval plus the deadlines (nothing is queued).
func (t Timing) MaxProbeAge() time.Duration { return t.Interval + t.ProbeTimeout + t.WriteTimeout }
