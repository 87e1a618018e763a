package facts

import (
	"slices"
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Expectation is what should report in a span.
type Expectation struct {
	span.Span
	Active bool // KMS is an encryption type
	Nodes  map[string]history.ExpectedNode
	// From, where that is a node's creation, is cut to the second: until sure the expectation before it may hold still.
	sure time.Time
}

func (x Expectation) expects(node string) bool {
	_, ok := x.Nodes[node]
	return ok
}

func (v *Facts) readExpectations() {
	for e := range v.Each(history.KindExpected) {
		x := Expectation{span.New(e.At, v.Period.To), e.Expected.KMSActive, map[string]history.ExpectedNode{}, e.At}
		for _, n := range e.Expected.Nodes {
			x.Nodes[n.Name] = n
			if n.Since.Equal(e.At) {
				x.sure = e.At.Add(time.Second)
			}
		}
		v.Expectations = span.Append(v.Expectations, x)
	}
}

// ExpectedAt returns what should report at t; ok is false before the first event of an expectation.
func (v *Facts) ExpectedAt(t time.Time) (x Expectation, ok bool) {
	i := sort.Search(len(v.Expectations), func(i int) bool { return v.Expectations[i].From.After(t) }) - 1
	if i < 0 {
		return Expectation{}, false
	}
	return v.Expectations[i], true
}

// KMSActive is when KMS was an active encryption type.
func (v *Facts) KMSActive() span.Set {
	return span.Where(v.Expectations, func(x Expectation) bool { return x.Active })
}

// NodeExpected is when a node should report.
func (v *Facts) NodeExpected(node string) span.Set {
	return span.Where(v.Expectations, func(x Expectation) bool { return x.Active && x.expects(node) })
}

// nodeListed is when a node was expected to report, also while KMS was not active.
func (v *Facts) nodeListed(node string) span.Set {
	return span.Where(v.Expectations, func(x Expectation) bool { return x.expects(node) })
}

// PluginExpected is when a plugin should be reported.
func (v *Facts) PluginExpected(p PluginID) span.Set {
	return span.Where(v.Expectations, func(x Expectation) bool { return x.Active && slices.Contains(x.Nodes[p.Node].KeyIDs, p.KeyID) })
}

// NotExpected is when it is known that a node should not report.
func (v *Facts) NotExpected(node string) span.Set {
	return v.NodeExpected(node).Complement(v.Period).Intersect(v.ExpectationsKnown())
}

// ExpectationsKnown is since when it is known what should report.
func (v *Facts) ExpectationsKnown() span.Set {
	if len(v.Expectations) == 0 {
		return nil
	}
	return span.Set{span.New(v.Expectations[0].From, v.Period.To)}
}

// ExpectedNodes are the names of all nodes that were ever expected, sorted.
func (v *Facts) ExpectedNodes() []string {
	all := map[string]bool{}
	for _, x := range v.Expectations {
		for n := range x.Nodes {
			all[n] = true
		}
	}
	return sortedKeys(all)
}

// grace is the end of a node's grace for its first report. It depends on when the aggregator first knew the node,
// which the history only bounds: from mayEnd on the node may, from mustEnd on it must be called missing.
type grace struct{ mayEnd, mustEnd time.Time }

// awaiting has what may have begun a grace.
type awaiting struct {
	v        *Facts
	restarts []time.Time // an aggregator started, and forgot what it had seen
	blank    []time.Time // … while its rollups did not stand on the CR
}

func newAwaiting(v *Facts) *awaiting {
	a := &awaiting{v: v}
	standing := span.Where(v.Rollup(contract.ConditionDegraded), present)
	for _, p := range v.OfRole(history.RoleAggregator) {
		for _, s := range v.Processes[p] {
			if s.Event != history.ProcessStarted && s.Event != history.ProcessReady {
				continue
			}
			a.restarts = append(a.restarts, s.From)
			if !standing.Contains(s.From) {
				a.blank = append(a.blank, s.From)
			}
		}
	}
	return a
}

// graces is the grace of every expected node that has no report at t.
func (a *awaiting) graces(t time.Time, x Expectation, reports map[string]*Report) map[string]grace {
	out := map[string]grace{}
	stale := contract.StaleAfter(a.v.Interval())
	for name, n := range x.Nodes {
		if reports[name] != nil {
			continue
		}
		// What surely began it, and what may have: an aggregator that restarted knows the node's creation only.
		seen := span.Latest(beginOf(a.v.NodeExpected(name), t), beginOf(a.v.KMSActive(), t))
		for _, s := range a.v.Reports[name] {
			if s.Value == nil && !s.From.After(t) { // it vanished
				seen = span.Latest(seen, s.From)
			}
		}
		early := seen
		for _, r := range a.restarts {
			if !r.After(t) && !r.Before(seen) {
				early = time.Time{}
			}
		}
		early = span.Latest(early, n.Since)
		if !seen.After(a.v.Expectations[0].From) { // expected since before the recording began
			early = n.Since
		}
		late := span.Latest(seen, n.Since.Add(time.Second))
		for _, r := range a.blank {
			if !r.After(t) {
				late = span.Latest(late, r.Add(a.v.Takeover()))
			}
		}
		out[name] = grace{early.Add(stale - a.v.Tolerance()), late.Add(stale + a.v.Latency())}
	}
	return out
}

// beginOf is the beginning of the span that has t; zero if there is none.
func beginOf(s span.Set, t time.Time) time.Time {
	for _, x := range s {
		if x.Contains(t) {
			return x.From
		}
	}
	return time.Time{}
}
