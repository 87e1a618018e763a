package invariants

import (
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

func judgeConvergence(v *facts.Facts) (f Finding) {
	judged := v.Aggregator.Able.Intersect(v.CR.Seen()).Intersect(v.Expectations.KMSActive())
	done := facts.Value{Status: "False", Reason: contract.ReasonAsExpected}
	for _, s := range v.CR.Of(contract.ConditionProgressing) {
		if s.Value == nil || len(judged.Clip(s.Span)) == 0 {
			continue
		}
		f.judgedIn(s.Span)
		called, says := facts.Value{Status: s.Value.Status, Reason: s.Value.Reason} == done, ", which says not converged"
		if called {
			says = ", which says converged"
		}
		converged := func(r facts.Rollups) bool { return (r.Progressing == done) == called }
		sameStatus := func(r facts.Rollups) bool { return r.Progressing.Status == s.Value.Status }
		status := v.Truths.Unexplained(s.Span, judged, sameStatus)
		for _, wrong := range v.Truths.Unexplained(s.Span, judged, converged) {
			rule := ""
			if !status.Overlaps(wrong) { // only the reason tells converged from not converged
				rule = "reasons"
			}
			f.Violate(Violation{Rule: rule, At: wrong.From, Seq: s.Seq, Seen: text.Condition(s.Value) + says,
				Allowed: allowedAt(v, wrong.From, func(r facts.Rollups) string { return r.Progressing.String() })})
		}
	}
	return f
}
