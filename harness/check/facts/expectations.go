package facts

import (
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Expectation is what should report in a span. The recorder derives it from the nodes and the encryption type in the
// API, as an aggregator does, and not from what the scenario intended.
type Expectation struct {
	span.Span
	Active bool // KMS is an encryption type
	Nodes  map[string]history.ExpectedNode
	// sure is set where From is a node's creation. A creationTimestamp has whole seconds, cut and not rounded: the
	// expectation before it may hold for up to a second longer.
	sure time.Time
}

func (x Expectation) expects(node string) bool {
	_, ok := x.Nodes[node]
	return ok
}

func (x Expectation) Reports() bool { return x.Active && len(x.Nodes) > 0 }

// Expectations are in time, each until the next one, the last until the end of the run.
type Expectations []Expectation

func newExpectations(log *Log) (out Expectations) {
	for e := range log.Each(history.KindExpected) {
		x := Expectation{span.New(e.At, log.Period.To), e.Expected.KMSActive, map[string]history.ExpectedNode{}, e.At}
		for _, n := range e.Expected.Nodes {
			x.Nodes[n.Name] = n
			if n.Since.Equal(e.At) {
				x.sure = e.At.Add(time.Second)
			}
		}
		out = span.Append(out, x)
	}
	return out
}

// At returns what should report at t: nothing before the first event of an expectation.
func (all Expectations) At(t time.Time) Expectation {
	x, _ := span.Last(all, t)
	return x
}

// Known is since when it is known what should report.
func (all Expectations) Known() span.Set { return span.All(all) }

func (all Expectations) KMSActive() span.Set {
	return span.Where(all, func(x Expectation) bool { return x.Active })
}

// KMSInactive returns the spans in which it is known that KMS was not an encryption type. It is no complement of
// KMSActive: before the first expectation neither is known.
func (all Expectations) KMSInactive() span.Set {
	return span.Where(all, func(x Expectation) bool { return !x.Active })
}

// Node is when a node should report.
func (all Expectations) Node(node string) span.Set {
	return span.Where(all, func(x Expectation) bool { return x.Active && x.expects(node) })
}

// NotNode returns the spans in which it is known that a node should not report. It is no complement of Node: before the
// first expectation neither is known, and NO-ORPHAN must not call a report an orphan then.
func (all Expectations) NotNode(node string) span.Set {
	return span.Where(all, func(x Expectation) bool { return !x.Active || !x.expects(node) })
}

// listed is when a node was expected to report, also while KMS was not active.
func (all Expectations) listed(node string) span.Set {
	return span.Where(all, func(x Expectation) bool { return x.expects(node) })
}

// Plugin is when a plugin should be reported.
func (all Expectations) Plugin(p PluginID) span.Set {
	return span.Where(all, func(x Expectation) bool { return x.Active && slices.Contains(x.Nodes[p.Node].KeyIDs, p.KeyID) })
}

// Nodes are the names of all nodes that were ever expected, sorted.
func (all Expectations) Nodes() []string {
	names := map[string]history.ExpectedNode{}
	for _, x := range all {
		maps.Copy(names, x.Nodes)
	}
	return sortedKeys(names)
}
