package check

import "github.com/kmsharness/kmsharness/contract"

func absenceIsNotBroken() Invariant {
	return Invariant{
		ID:        "ABSENCE-IS-NOT-BROKEN",
		Statement: "a node that has not yet reported never makes the rollup True; after its grace it makes it Unknown",
		Source:    "The aggregator",
		Rules:     []Rule{{Code: ruleBroken, Statement: "a node that has not yet reported never makes the rollup True"}},
		Timed:     AllTimed,
		Judge:     judgeAbsence,
	}
}

func judgeAbsence(v *Facts) (f Finding) {
	absent := v.able.aggregator.and(v.objects.absences())
	for _, s := range v.objects.rollup(contract.ConditionDegraded) {
		judged := absent.clip(s.span)
		if len(judged) == 0 || s.cond == nil {
			continue
		}
		f.JudgedAt(firstOf(judged), judged[len(judged)-1].to)
		accepts := func(t truth) bool { return absenceAllows(t, s.cond.Status) }
		for _, wrong := range v.truths.unexplained(s.span, judged, accepts) {
			f.Violate(Violation{Rule: map[string]string{"True": ruleBroken}[s.cond.Status], At: wrong.from, Seq: s.seq, Seen: shown(s.cond) + ", while an expected node had no report",
				Allowed: v.truths.allowedNear(wrong.from, func(r rollups) string { return r.degraded.String() })})
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
func (ob *objectFacts) absences() spans {
	var out spans
	for _, node := range ob.facts.expectations.nodes() {
		out = out.or(ob.facts.expectations.ofNode(node).and(ob.present(node).not(ob.facts.complete)))
	}
	return out.and(ob.watched())
}
