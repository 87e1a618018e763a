package check

import (
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// stood is one state of a condition and when it could be seen.
type stood struct {
	span
	seq  int64
	cond *history.Condition // nil: there was none
}

// history of one condition of an object whose first state was seen at first.
func (ob *objectFacts) standing(changes []condChange, first time.Time) []stood {
	var out []stood
	at, seq, cond := first, int64(0), (*history.Condition)(nil)
	for _, c := range changes {
		if s := (span{at, c.at}); !s.empty() {
			out = append(out, stood{s, seq, cond})
		}
		at, seq, cond = c.at, c.seq, c.cond
	}
	if s := (span{at, ob.facts.complete.to}); !s.empty() {
		out = append(out, stood{s, seq, cond})
	}
	return out
}

// rollup is the states of one rollup on the CR since the CR was first seen.
func (ob *objectFacts) rollup(conditionType string) []stood {
	if len(ob.crs) == 0 {
		return nil
	}
	return ob.standing(ob.crConds[conditionType], ob.crs[0].at)
}

// clusterOperator is the same for a condition of the ClusterOperator, since that was first seen: one that nobody ever writes to has no
// conditions, which is a state as well.
func (ob *objectFacts) clusterOperator(conditionType string) []stood {
	if ob.coSeen.IsZero() {
		return nil
	}
	return ob.standing(ob.coConds[conditionType], ob.coSeen)
}

// degraded is when KMSPluginsDegraded had one of the given status.
func (ob *objectFacts) degraded(status string) []stood {
	var out []stood
	for _, s := range ob.rollup(contract.ConditionDegraded) {
		if s.cond != nil && s.cond.Status == status {
			out = append(out, s)
		}
	}
	return out
}

// present is when a report of node stood on the CR.
func (ob *objectFacts) present(node string) spans {
	var out []span
	changes := ob.reports[node]
	for i, c := range changes {
		if c.rep == nil {
			continue
		}
		to := ob.facts.complete.to
		if i+1 < len(changes) {
			to = changes[i+1].at
		}
		out = append(out, span{c.at, to})
	}
	return merged(out)
}

// watched is since when the CR was seen.
func (ob *objectFacts) watched() spans {
	if len(ob.crs) == 0 {
		return nil
	}
	return spans{{ob.crs[0].at, ob.facts.complete.to}}
}

// reportingNodes are the names of all nodes of which a report was ever seen, sorted.
func (ob *objectFacts) reportingNodes() []string {
	out := make([]string, 0, len(ob.reports))
	for n := range ob.reports {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// nodes returns the names of all nodes that were ever expected, sorted.
func (xs *expectations) nodes() []string {
	seen := map[string]bool{}
	var out []string
	for _, x := range xs.all {
		for n := range x.nodes {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	sort.Strings(out)
	return out
}
