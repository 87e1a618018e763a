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
		Rules: []Rule{
			{Code: ruleMalformed, Statement: "a report that cannot be read makes KMSPluginsDegraded Unknown"},
			{Code: ruleClockSkew, Statement: "a report from the future makes KMSPluginsDegraded Unknown"},
			{Code: ruleAvailable, Statement: "KMSPluginsAvailable has the status of the table"},
			{Code: ruleProgressing, Statement: "KMSPluginsProgressing has the status of the table"},
			{Code: ruleReasons, Statement: houseReasons, House: true},
			{Code: ruleBound, Statement: "the message of a rollup has at most 4096 characters", House: true},
		},
		Timed: AllTimed,
		Judge: judgeRollupTruth,
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
				rule := ruleReasons
				if len(v.truths.unexplained(s.span, judged, status).or(untrueWhileLate(v, s.span, status)).clip(w)) > 0 {
					rule = kind.rule(s.cond, v.truths.near(span{w.from, w.from.Add(1)}))
				}
				f.Violate(Violation{Rule: rule, At: w.from, Seq: s.seq, Seen: kind.name + ": " + shown(s.cond), Allowed: v.truths.allowedNear(w.from, kind.show)})
			}
			if s.cond != nil && utf8.RuneCountInString(s.cond.Message) > contract.MaxRollupMessageChars {
				f.Violate(Violation{Rule: ruleBound, At: s.from, Seq: s.seq, Seen: "message of " + number(int64(utf8.RuneCountInString(s.cond.Message))) + " characters", Allowed: "at most 4096, then \"and N more\""})
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
	code string // of the rule about its status
	of   func(rollups) value
}

func rollupKinds() []rollupKind {
	return []rollupKind{
		{contract.ConditionDegraded, "", func(r rollups) value { return r.degraded }},
		{contract.ConditionAvailable, ruleAvailable, func(r rollups) value { return r.available }},
		{contract.ConditionProgressing, ruleProgressing, func(r rollups) value { return r.progressing }},
	}
}

// rule is the rule about a status that is not that of the table: where the status is, or should be, that of a row with a rule of its own, the row's.
func (k rollupKind) rule(c *history.Condition, near []truth) string {
	for _, row := range [][2]string{{contract.ReasonReportMalformed, ruleMalformed}, {contract.ReasonClockSkew, ruleClockSkew}} {
		demanded := func(t truth) bool {
			return slices.ContainsFunc(t.allowed, func(r rollups) bool { return k.of(r).reason == row[0] })
		}
		if c != nil && c.Reason == row[0] || slices.ContainsFunc(near, demanded) {
			return row[1]
		}
	}
	return k.code
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
