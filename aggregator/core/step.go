package core

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Input is everything that a step looks at, besides the memory of the step before.
type Input struct {
	Now time.Time
	// Interval (I) of the reporters; staleness is derived from it.
	Interval time.Duration
	// Nodes that should report, each with the instant at which it was created (whole seconds).
	Nodes map[string]time.Time
	// KMSActive is true while KMS is an active encryption type.
	KMSActive bool
	Observed  Observed
	// ClusterOperator is the conditions that stand on the ClusterOperator.
	ClusterOperator []Condition
	// Union is how the conditions of the CR are united into those of the ClusterOperator.
	Union contract.Union
}

// Decision is what a step wants done. Carrying it out and stepping again with nothing changed decides nothing new.
type Decision struct {
	// Rollups wanted on the operator's CR; none while KMS is not active.
	Rollups []Condition
	// WriteRollups is true when they differ from what stands there.
	WriteRollups bool
	// Remove is what should disappear from the CR. After removing, tell Memory.Removed.
	Remove Removal
	// ClusterOperator is the conditions wanted there, the union of all conditions of the CR.
	ClusterOperator []Condition
	// WriteClusterOperator is true when they differ from what stands there.
	WriteClusterOperator bool
	// NextWake is the earliest instant at which the answer changes without any event; zero if there is none.
	NextWake time.Time
	// Memory for the next step.
	Memory Memory
}

// Step decides.
func Step(in Input, m Memory) Decision {
	m = m.remember(in)
	d := Decision{Remove: cleanup(in, m), NextWake: nextWake(in, m), Memory: m}
	if !in.KMSActive {
		return d.Say(in, nil)
	}
	nodes := assess(in, m)
	return d.Say(in, []Condition{degraded(nodes), available(nodes), progressing(nodes)})
}

// Say makes the rollups those that are given, and the ClusterOperator, unless it is left to another, their union with the conditions of others.
func (d Decision) Say(in Input, rollups []Condition) Decision {
	d.Rollups, d.WriteRollups = settle(rollups, in.Observed.Conditions, in.Now)
	if in.Union.Leave {
		return d
	}
	united, expires := union(append(others(in.Observed.Conditions), d.Rollups...), in.Union, in.Now)
	d.NextWake = sooner(d.NextWake, expires)
	d.ClusterOperator, d.WriteClusterOperator = settle(united, in.ClusterOperator, in.Now)
	return d
}

// others are the conditions of the CR that are not the aggregator's own.
func others(conditions []Condition) []Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c Condition) bool {
		return slices.Contains(contract.RollupTypes(), c.Type)
	})
}

// instant is the least step of time: bounds are inclusive, so an answer changes one instant after its bound.
const instant = time.Nanosecond

// nextWake is the earliest instant after now at which the answer changes although nothing happens: an entry becomes
// stale, a skewed one is caught up by the clock, a grace ends, an orphan becomes stale. Zero: never.
func nextWake(in Input, m Memory) time.Time {
	var next time.Time
	consider := func(at time.Time) {
		if at.After(in.Now) {
			next = sooner(next, at)
		}
	}
	for name := range m.nodes {
		report, reported := in.Observed.Reports[name]
		if !reported {
			consider(graceEnd(m.awaitingSince(name), in.Interval).Add(instant))
		}
		for _, e := range report.Entries {
			consider(e.LastChecked.Add(-in.Interval)) // from here on not skewed
			consider(e.LastChecked.Add(contract.StaleAfter(in.Interval)).Add(instant))
		}
	}
	for name, o := range m.orphans {
		consider(o.staleAt(in.Observed.Reports[name], in.Interval).Add(instant))
	}
	return next
}

// sooner is the earlier of two instants of which zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
