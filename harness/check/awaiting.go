package check

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// grace is the end of a node's grace for its first report. It depends on when the aggregator first knew the node,
// which the history only bounds: from mayEnd on the node may, from mustEnd on it must be called missing.
type grace struct{ mayEnd, mustEnd time.Time }

// awaiting remembers, going forward in time, what may have begun a grace.
type awaiting struct {
	v        *Facts
	gone     map[string][]time.Time // when reports vanished, by node
	restarts []time.Time            // an aggregator started, and forgot what it had seen
	blank    []time.Time            // … while its rollups did not stand on the CR
}

func newAwaiting(v *Facts) *awaiting {
	a := &awaiting{v: v, gone: map[string][]time.Time{}}
	for node, changes := range v.objects.reports {
		for _, c := range changes {
			if c.rep == nil {
				a.gone[node] = append(a.gone[node], c.at)
			}
		}
	}
	degraded := v.objects.rollup(contract.ConditionDegraded)
	for _, p := range v.processes.ofRole(history.RoleAggregator) {
		for _, c := range v.processes.procs[p] {
			if c.event != history.ProcessStarted && c.event != history.ProcessReady {
				continue
			}
			a.restarts = append(a.restarts, c.at)
			standing := false
			for _, s := range degraded {
				standing = standing || s.cond != nil && s.has(c.at)
			}
			if !standing {
				a.blank = append(a.blank, c.at)
			}
		}
	}
	return a
}

// graces is the grace of every expected node that has no report at t.
func (a *awaiting) graces(t time.Time, x expectation, reports map[string]*report) map[string]grace {
	out := map[string]grace{}
	stale := contract.StaleAfter(a.v.interval())
	for name, n := range x.nodes {
		if reports[name] != nil {
			continue
		}
		// What surely began it, and what may have: an aggregator that restarted knows the node's creation only.
		seen := latest(a.lastIn(a.v.expectations.ofNode(name), t), a.lastIn(a.v.expectations.active(), t), a.vanished(name, t))
		early := seen
		for _, r := range a.restarts {
			if !r.After(t) && !r.Before(seen) {
				early = time.Time{}
			}
		}
		early = latest(early, n.Since)
		if !seen.After(a.v.expectations.all[0].from) { // expected since before the recording began
			early = n.Since
		}
		late := latest(seen, n.Since.Add(time.Second))
		for _, r := range a.blank {
			if !r.After(t) {
				late = latest(late, r.Add(a.v.takeover()))
			}
		}
		out[name] = grace{early.Add(stale - a.v.tolerance()), late.Add(stale + a.v.latency())}
	}
	return out
}

// lastIn is the beginning of the span that holds t.
func (a *awaiting) lastIn(s spans, t time.Time) time.Time {
	for _, x := range s {
		if x.has(t) {
			return x.from
		}
	}
	return time.Time{}
}

// vanished is when the last report of node went, at or before t.
func (a *awaiting) vanished(node string, t time.Time) time.Time {
	return lastIn(a.gone[node], time.Time{}, t, time.Time{})
}
