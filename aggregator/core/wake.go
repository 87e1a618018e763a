package core

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

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
