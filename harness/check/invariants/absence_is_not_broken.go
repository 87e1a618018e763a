package invariants

import (
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

// judgeAbsence: with a node absent, True needs an entry of another node that says so, False a grace that is not over.
func judgeAbsence(v *facts.Facts) (f Finding) {
	var absent span.Set
	for _, node := range v.Expectations.Nodes() {
		absent = absent.Union(v.Expectations.Node(node).Intersect(v.Reports.Present(node).Complement(v.Period)))
	}
	absent = absent.Intersect(v.CR.Seen()).Intersect(v.Aggregator.Able)
	for _, s := range v.CR.Of(contract.ConditionDegraded) {
		judged := absent.Clip(s.Span)
		if len(judged) == 0 || s.Value == nil {
			continue
		}
		f.judgedThrough(judged)
		status := func(r facts.Rollups) bool { return r.Degraded.Status == s.Value.Status }
		for _, wrong := range v.Truths.Unexplained(s.Span, judged, status) {
			f.Violate(Violation{Rule: map[string]string{"True": "true"}[s.Value.Status], At: wrong.From, Seq: s.Seq, Seen: text.Condition(s.Value) + ", while an expected node had no report",
				Allowed: allowedAt(v, wrong.From, func(r facts.Rollups) string { return r.Degraded.String() })})
		}
	}
	return f
}
