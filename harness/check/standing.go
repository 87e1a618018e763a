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
func (v *view) standing(changes []condChange, first time.Time) []stood {
	var out []stood
	at, seq, cond := first, int64(0), (*history.Condition)(nil)
	for _, c := range changes {
		if s := (span{at, c.at}); !s.empty() {
			out = append(out, stood{s, seq, cond})
		}
		at, seq, cond = c.at, c.seq, c.cond
	}
	if s := (span{at, v.whole.to}); !s.empty() {
		out = append(out, stood{s, seq, cond})
	}
	return out
}

// rollup is the states of one rollup on the CR since the CR was first seen.
func (v *view) rollup(conditionType string) []stood {
	if len(v.crs) == 0 {
		return nil
	}
	return v.standing(v.crConds[conditionType], v.crs[0].at)
}

// clusterOperator is the same for a condition of the ClusterOperator, since that was first seen: one that nobody ever writes to has no
// conditions, which is a state as well.
func (v *view) clusterOperator(conditionType string) []stood {
	if v.coSeen.IsZero() {
		return nil
	}
	return v.standing(v.coConds[conditionType], v.coSeen)
}

// degraded is when KMSPluginsDegraded had one of the given status.
func (v *view) degraded(status string) []stood {
	var out []stood
	for _, s := range v.rollup(contract.ConditionDegraded) {
		if s.cond != nil && s.cond.Status == status {
			out = append(out, s)
		}
	}
	return out
}

// present is when a report of node stood on the CR.
func (v *view) present(node string) spans {
	var out []span
	changes := v.reports[node]
	for i, c := range changes {
		if c.rep == nil {
			continue
		}
		to := v.whole.to
		if i+1 < len(changes) {
			to = changes[i+1].at
		}
		out = append(out, span{c.at, to})
	}
	return merged(out)
}

// watched is since when the CR was seen.
func (v *view) watched() spans {
	if len(v.crs) == 0 {
		return nil
	}
	return spans{{v.crs[0].at, v.whole.to}}
}

// reportingNodes are the names of all nodes of which a report was ever seen, sorted.
func (v *view) reportingNodes() []string {
	out := make([]string, 0, len(v.reports))
	for n := range v.reports {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// expectedNodes are the names of all nodes that were ever expected, sorted.
func (v *view) expectedNodes() []string {
	seen := map[string]bool{}
	var out []string
	for _, x := range v.expected {
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
