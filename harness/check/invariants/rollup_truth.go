package invariants

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

func judgeRollupTruth(v *facts.Facts) (f Finding) {
	judged := v.Aggregator.Able.Intersect(v.CR.Seen()).Intersect(v.Expectations.KMSActive())
	f.measure("judged", text.Short(judged.Total()))
	looked := judged.Union(span.All(v.LateWatches))
	for _, kind := range rollupKinds() {
		for _, s := range v.CR.Of(kind.name) {
			if !looked.Overlaps(s.Span) {
				continue
			}
			f.judgedIn(s.Span)
			c := s.Value
			untrue := func(fits func(facts.Value) bool) span.Set {
				accepts := func(r facts.Rollups) bool { return c != nil && fits(kind.of(r)) && kind.named(r, c.Message) }
				return v.Truths.Unexplained(s.Span, judged, accepts).Union(untrueWhileLate(v, s.Span, accepts))
			}
			for _, w := range untrue(func(x facts.Value) bool { return x.Status == c.Status && x.Reason == c.Reason }) {
				rule := "reasons"
				if untrue(func(x facts.Value) bool { return x.Status == c.Status }).Overlaps(w) {
					rule = kind.rule(c, v.Truths.Near(span.New(w.From, w.From.Add(1))))
				}
				f.Violate(Violation{Rule: rule, At: w.From, Seq: s.Seq, Seen: kind.name + ": " + text.Condition(c), Allowed: allowedAt(v, w.From, kind.show)})
			}
			if c == nil {
				continue
			}
			if n := utf8.RuneCountInString(c.Message); n > contract.MaxRollupMessageChars {
				f.Violate(Violation{Rule: "bound", At: s.From, Seq: s.Seq, Seen: fmt.Sprintf("message of %d characters", n), Allowed: "at most 4096, then \"and N more\""})
			}
		}
	}
	return f
}

// untrueWhileLate is a rollup that was written while watches were late, and was not true then. What stands may be behind; what is written may
// not, for an aggregator reads the API server before.
func untrueWhileLate(v *facts.Facts, s span.Span, accepts func(facts.Rollups) bool) span.Set {
	written := span.New(s.From, s.From.Add(1))
	judged := v.Aggregator.Behind.Settled(v.Latency()).Intersect(v.CR.Seen()).Intersect(v.Expectations.KMSActive()).Intersect(span.All(v.LateWatches)).Clip(written)
	return v.Truths.Unexplained(written, judged, accepts)
}

// rollupKind is one rollup condition and where its value stands in the truth.
type rollupKind struct {
	name string
	code string // of the rule about its status
	of   func(facts.Rollups) facts.Value
}

func rollupKinds() []rollupKind {
	return []rollupKind{
		{contract.ConditionDegraded, "", func(r facts.Rollups) facts.Value { return r.Degraded }},
		{contract.ConditionAvailable, "available", func(r facts.Rollups) facts.Value { return r.Available }},
		{contract.ConditionProgressing, "progressing", func(r facts.Rollups) facts.Value { return r.Progressing }},
	}
}

// rule is the rule about a status that is not that of the table: where the status is, or should be, that of a row with a rule of its own, the row's.
func (k rollupKind) rule(c *history.Condition, near []facts.Truth) string {
	for _, row := range [][2]string{{contract.ReasonReportMalformed, "malformed"}, {contract.ReasonClockSkew, "clock-skew"}} {
		demanded := func(t facts.Truth) bool {
			return t.Allows(func(r facts.Rollups) bool { return k.of(r).Reason == row[0] })
		}
		if c != nil && c.Reason == row[0] || slices.ContainsFunc(near, demanded) {
			return row[1]
		}
	}
	return k.code
}

// named reports whether the message of KMSPluginsDegraded names what it must.
func (k rollupKind) named(r facts.Rollups, message string) bool {
	return k.name != contract.ConditionDegraded || !slices.ContainsFunc(r.Named, func(who string) bool { return !names(message, who) })
}

func (k rollupKind) show(r facts.Rollups) string {
	if k.name == contract.ConditionDegraded && len(r.Named) > 0 {
		return k.of(r).String() + " naming " + strings.Join(r.Named, ", ")
	}
	return k.of(r).String()
}

// names reports whether a rollup's message names who ("node" or "node/keyID"), as a word of its own, or is cut.
func names(message, who string) bool {
	who = nameShown(who)
	for rest, at := message, 0; ; {
		i := strings.Index(rest[at:], who)
		if i < 0 {
			return isCut(message)
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(rest[:i])
		after, _ := utf8.DecodeRuneInString(rest[i+len(who):])
		if !partOfName(before) && (len(who) > maxNameShown || !partOfName(after)) {
			return true
		}
		at = i + 1
	}
}

// maxNameShown: longer names may stand cut in a message, so only their beginning is looked for.
const maxNameShown = 48

func nameShown(who string) string {
	if len(who) <= maxNameShown {
		return who
	}
	node, _, _ := strings.Cut(who, "/")
	return node[:min(len(node), maxNameShown)]
}

func partOfName(r rune) bool {
	return r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func isCut(message string) bool {
	return regexp.MustCompile(`and [0-9]+ more$`).MatchString(message)
}
