package check

import (
	"slices"

	"github.com/kmsharness/kmsharness/contract"
)

func convergence() Invariant {
	return Invariant{
		ID:        "CONVERGENCE",
		Statement: "rotation is called converged exactly when every expected node freshly reports the same healthy kekID for the write key",
		Source:    "The aggregator, convergence",
		House:     []string{houseReasons},
		Timed:     AllTimed,
		Judge:     judgeConvergence,
	}
}

func judgeConvergence(v *Facts) (f Finding) {
	judged := v.able.aggregator.and(v.objects.watched()).and(v.expectations.active())
	done := value{"False", contract.ReasonAsExpected}
	for _, s := range v.objects.rollup(contract.ConditionProgressing) {
		if s.cond == nil || len(judged.clip(s.span)) == 0 {
			continue
		}
		f.JudgedAt(s.from, s.to)
		called := value{s.cond.Status, s.cond.Reason} == done
		wrong := v.truths.unexplained(s.span, judged, func(t truth) bool {
			for _, r := range t.allowed {
				if (r.progressing == done) == called {
					return true
				}
			}
			return false
		})
		status := v.truths.unexplained(s.span, judged, func(t truth) bool {
			return slices.ContainsFunc(t.allowed, func(r rollups) bool { return r.progressing.status == s.cond.Status })
		})
		for _, w := range wrong {
			house := ""
			if len(status.clip(w)) == 0 { // only the reason tells converged from not converged
				house = houseReasons
			}
			f.Violate(Violation{House: house, At: w.from, Seq: s.seq, Seen: shown(s.cond) + map[bool]string{true: ", which says converged", false: ", which says not converged"}[called],
				Allowed: v.truths.allowedNear(w.from, func(r rollups) string { return r.progressing.String() })})
		}
	}
	return f
}
