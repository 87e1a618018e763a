package invariants

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

func judgeNoOrphan(v *facts.Facts) (f Finding) {
	bound := v.CleanupBound() + v.Tolerance
	for _, node := range v.Reports.Nodes() {
		for _, orphan := range v.Expectations.NotNode(node).Intersect(v.Reports.Present(node)) {
			f.judgedIn(orphan)
			for _, late := range overdue(orphan, reportsWritten(v, node), bound, cleaning(v, node, orphan, bound)) {
				f.Violate(Violation{At: late.From, From: orphan.From, To: late.From, Node: node, Seen: "the report of " + node + " still stands, " + text.Short(late.From.Sub(orphan.From)) + " after the node (or KMS) was gone",
					Allowed: "removed within " + text.Short(bound) + " after its last writer stopped"})
			}
		}
	}
	inactive := v.Expectations.KMSInactive()
	for _, t := range contract.RollupTypes() {
		for s, orphan := range span.Within(v.CR.Of(t), inactive) {
			if s.Value == nil {
				continue
			}
			f.judgedIn(orphan)
			for _, late := range overdue(orphan, nil, bound, v.Aggregator.Able) {
				f.Violate(Violation{At: late.From, From: orphan.From, To: late.From, Seq: s.Seq, Seen: text.Condition(s.Value) + ", although KMS is not active", Allowed: "absent within " + text.Short(bound) + " after KMS was disabled"})
			}
		}
	}
	return f
}

// cleaning is when an aggregator could have removed the orphaned report of a node. One that claims a time to come, since its node's clock
// was ahead, counts from when the aggregator first saw it.
func cleaning(v *facts.Facts, node string, orphan span.Span, bound time.Duration) span.Set {
	if v.Clocks.Ahead(node, orphan.Grow(v.StaleBound(), 0)) > 0 {
		return v.Aggregator.InCharge.Settled(bound)
	}
	return v.Aggregator.Able
}

// overdue returns the first span in which an orphan stood for longer than bound since it became one or was last written, while the
// aggregator could have removed it.
func overdue(orphan span.Span, written []time.Time, bound time.Duration, able span.Set) span.Set {
	var excused []span.Span
	for _, w := range written {
		if !w.After(orphan.To) {
			excused = append(excused, span.New(w, w.Add(bound)))
		}
	}
	late := span.Set{orphan}.Settled(bound).Intersect(span.Merge(excused).Complement(orphan)).Intersect(able)
	return late[:min(1, len(late))] // one violation for one orphan
}

// reportsWritten are the instants at which a report of node was written, by the system under test or by others.
func reportsWritten(v *facts.Facts, node string) []time.Time {
	var out []time.Time
	for _, s := range v.Reports[node] {
		if s.Value != nil {
			out = append(out, s.From)
		}
	}
	for _, w := range v.Reporters.Writes(node) {
		out = append(out, w.To)
	}
	return out
}
