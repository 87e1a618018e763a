package check

import (
	"slices"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func rollupTruth() Invariant {
	return Invariant{
		ID:        "ROLLUP-TRUTH",
		Statement: "each rollup equals the contract's table applied to the reports visible at that moment",
		Source:    "The aggregator",
		House:     []string{houseReasons, houseBound},
		Timed:     AllTimed,
		Judge:     judgeRollupTruth,
	}
}

func judgeRollupTruth(v *Facts) (f Finding) {
	judged := v.able.aggregator.and(v.objects.watched()).and(v.expectations.active())
	f.measure("judged", short(judged.total()))
	for _, kind := range rollupKinds() {
		for _, s := range v.objects.rollup(kind.name) {
			if len(judged.or(v.network.lateness()).clip(s.span)) == 0 {
				continue
			}
			f.JudgedAt(s.from, s.to)
			accepts := func(t truth) bool { return kind.allowed(t, s.cond) }
			status := func(t truth) bool { return kind.allowedStatus(t, s.cond) }
			for _, w := range v.truths.unexplained(s.span, judged, accepts).or(untrueWhileLate(v, s.span, accepts)) {
				house := houseReasons
				if len(v.truths.unexplained(s.span, judged, status).or(untrueWhileLate(v, s.span, status)).clip(w)) > 0 {
					house = ""
				}
				f.Violate(Violation{House: house, At: w.from, Seq: s.seq, Seen: kind.name + ": " + shown(s.cond), Allowed: v.truths.allowedNear(w.from, kind.show)})
			}
			if s.cond != nil && utf8.RuneCountInString(s.cond.Message) > contract.MaxRollupMessageChars {
				f.Violate(Violation{House: houseBound, At: s.from, Seq: s.seq, Seen: "message of " + number(int64(utf8.RuneCountInString(s.cond.Message))) + " characters", Allowed: "at most 4096, then \"and N more\""})
			}
		}
	}
	return f
}

// untrueWhileLate is a rollup that was written while watches were late, and was not true then. What stands may be behind; what is written may
// not, for an aggregator looks at the API server before.
func untrueWhileLate(v *Facts, s span, accepts func(truth) bool) spans {
	written := span{s.from, s.from.Add(1)}
	judged := v.able.behind.settled(v.latency()).and(v.objects.watched()).and(v.expectations.active()).and(v.network.lateness()).clip(written)
	return v.truths.unexplained(written, judged, accepts)
}

// rollupKind is one rollup condition and where its value stands in the truth.
type rollupKind struct {
	name string
	of   func(rollups) value
}

func rollupKinds() []rollupKind {
	return []rollupKind{
		{contract.ConditionDegraded, func(r rollups) value { return r.degraded }},
		{contract.ConditionAvailable, func(r rollups) value { return r.available }},
		{contract.ConditionProgressing, func(r rollups) value { return r.progressing }},
	}
}

func (k rollupKind) allowed(t truth, c *history.Condition) bool {
	return k.any(t, c, func(v value) bool { return v == value{c.Status, c.Reason} })
}

// allowedStatus leaves out the reason.
func (k rollupKind) allowedStatus(t truth, c *history.Condition) bool {
	return k.any(t, c, func(v value) bool { return v.status == c.Status })
}

func (k rollupKind) any(t truth, c *history.Condition, fits func(value) bool) bool {
	return c != nil && slices.ContainsFunc(t.allowed, func(r rollups) bool {
		return fits(k.of(r)) && (k.name != contract.ConditionDegraded || namesAll(c.Message, r.named))
	})
}

func (k rollupKind) show(r rollups) string {
	if k.name == contract.ConditionDegraded && len(r.named) > 0 {
		return k.of(r).String() + " naming " + joined(r.named, ", ")
	}
	return k.of(r).String()
}

func namesAll(message string, who []string) bool {
	for _, w := range who {
		if !names(message, w) {
			return false
		}
	}
	return true
}
