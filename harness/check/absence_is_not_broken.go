package check

import "github.com/kmsharness/kmsharness/contract"

func absenceIsNotBroken() Invariant {
	return Invariant{
		ID:        "ABSENCE-IS-NOT-BROKEN",
		Statement: "a node that has not yet reported never makes the rollup True; after its grace it makes it Unknown",
		Source:    "The aggregator",
		judge:     judgeAbsence,
	}
}

func judgeAbsence(v *view) (f Finding) {
	absent := v.aggAble.and(v.absences())
	for _, s := range v.rollup(contract.ConditionDegraded) {
		judged := absent.clip(s.span)
		if len(judged) == 0 || s.cond == nil {
			continue
		}
		f.judgedAt(firstOf(judged), judged[len(judged)-1].to)
		accepts := func(t truth) bool { return absenceAllows(t, s.cond.Status) }
		for _, wrong := range v.unexplained(s.span, judged, accepts) {
			f.violate(Violation{At: wrong.from, Seq: s.seq, Seen: shown(s.cond) + ", while an expected node had no report",
				Allowed: v.allowedNear(wrong.from, func(r rollups) string { return r.degraded.String() })})
		}
	}
	return f
}

// absenceAllows: with a node absent, True needs an entry of another node that says so, False a grace that is not over.
func absenceAllows(t truth, status string) bool {
	for _, r := range t.allowed {
		if r.degraded.status == status {
			return true
		}
	}
	return false
}

// absences is when some expected node had no report on the CR.
func (v *view) absences() spans {
	var out spans
	for _, node := range v.expectedNodes() {
		out = out.or(v.nodeExpected(node).and(v.present(node).not(v.whole)))
	}
	return out.and(v.watched())
}
