package core

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Removal is what is to disappear from the operator's CR.
type Removal struct {
	// Nodes whose reports go, in both wire forms; sorted.
	Nodes []string
	// Entries of the typed form go one by one.
	Entries []contract.TypedReport
	// Conditions that go: the aggregator's own rollups, when KMS was disabled.
	Conditions []string
}

// Empty is true when nothing is to be removed.
func (r Removal) Empty() bool {
	return len(r.Nodes) == 0 && len(r.Entries) == 0 && len(r.Conditions) == 0
}

// cleanup decides what goes. A report whose node (or KMS) was seen to go is removed at once. Any other orphan is
// removed when it is stale, and not before: it was re-created by a reporter that is still shutting down, which would
// only write it again, or its node is just not in the cache yet. A report over its bounds is removed at once: it
// may keep everybody else from writing.
func cleanup(in Input, m Memory) Removal {
	var out Removal
	for name, report := range in.Observed.Reports {
		if report.Oversized {
			out.Nodes = append(out.Nodes, name)
		}
	}
	for name, o := range m.orphans {
		if o.evict || in.Now.After(o.staleAt(in.Observed.Reports[name], in.Interval)) {
			out.Nodes = append(out.Nodes, name)
		}
	}
	slices.Sort(out.Nodes)
	out.Nodes = slices.Compact(out.Nodes)
	if in.KMSActive {
		return out
	}
	for _, t := range contract.RollupTypes() {
		if _, ok := find(in.Observed.Conditions, t); ok {
			out.Conditions = append(out.Conditions, t)
		}
	}
	return out
}

// staleAt is the last instant at which an orphan may be its writer's latest word. A report that cannot be read, or
// that claims a time to come, counts from when it was first seen: it was written before that.
func (o orphan) staleAt(report Report, interval time.Duration) time.Time {
	at := o.since
	if checked := newest(report.Entries); !checked.IsZero() && checked.Before(at) {
		at = checked
	}
	return at.Add(contract.StaleAfter(interval))
}
