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

// It computes what the rollups had to say from the reports alone (facts.Truths) and not from the plugins: a reporter
// that lies is a violation of TRUTHFUL-PROBE, and an aggregator that believes it is right.
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

// names reports whether a rollup's message names who ("node" or "node/keyID"), or is cut. It must be a word of its own:
// "cp-1" is not named by "cp-10". Punctuation around it is the writer's choice.
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

// It is a part of ROLLUP-TRUTH with an ID of its own, because rotation controllers continue at exactly this value
// (False/AsExpected).
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

// It uses the writes in the audit log and not facts.Truths, so that it and ROLLUP-TRUTH check each other.
func judgeStaleUnknown(v *facts.Facts) (f Finding) {
	healthy := v.CR.Degraded("False")
	bound := contract.StaleAfter(v.Interval) + v.Latency()
	for _, node := range v.Expectations.Nodes() {
		settled := v.Expectations.Node(node).Settled(v.Latency()).Intersect(v.Aggregator.Able).Intersect(v.Reports.Present(node))
		for _, quiet := range silences(v, node) {
			for _, due := range settled.Clip(quiet) {
				f.judgedIn(due)
				for s, c := range span.Within(healthy, span.Set{due}) {
					f.Violate(Violation{At: c.From, From: quiet.From.Add(-bound), To: quiet.From, Seq: s.Seq, Node: node, Seen: text.Condition(s.Value) + ", while " + node + " had not written for over " + text.Short(v.StaleBound()),
						Allowed: "Unknown or True from " + text.Short(v.StaleBound()+v.Tolerance) + " after its last successful write"})
				}
			}
		}
	}
	return f
}

// landed returns the writes of node's reporter that took effect: the successful ones, and those of unknown outcome whose
// report the CR shows.
func landed(v *facts.Facts, node string) []facts.Write {
	out := slices.Clone(v.Reporters.Writes(node))
	for _, r := range v.Requests.Tried[node] {
		shows := func(s facts.State[facts.Report]) bool {
			return !s.From.Before(r.Received) && slices.Equal(s.Value.Entries, r.Entries)
		}
		if r.Undecided() && len(r.Entries) > 0 && slices.ContainsFunc(v.Reports.Own(node), shows) {
			out = append(out, facts.WriteOf(r))
		}
	}
	slices.SortStableFunc(out, func(a, b facts.Write) int { return a.To.Compare(b.To) })
	return out
}

// silences returns the spans in which the last write of node that took effect was older than 4 I + A. What was checked
// by a clock that was ahead is believed for as much longer. One that was behind is believed for less, which only makes
// the rollup Unknown earlier.
func silences(v *facts.Facts, node string) []span.Span {
	var out []span.Span
	writes := landed(v, node)
	for i, w := range writes {
		ahead := v.Clocks.Ahead(node, span.New(w.From.Add(-v.MaxProbeAge()-v.Tolerance), w.From.Add(1)))
		until := v.Period.To
		if i+1 < len(writes) {
			until = writes[i+1].From
		}
		if s := span.New(w.To.Add(contract.StaleAfter(v.Interval)+v.Latency()+ahead), until); !s.Empty() {
			out = append(out, s)
		}
	}
	return out
}

// judgeFalseHealthy judges the part of a bad run in which the rollup must not be False: from where reporter and
// aggregator could do their work for the whole detection bound, to the end of the run, while the plugin is expected.
// Once it was due it stays due: if the reporter then stops, the rollup is True until the report is stale, and Unknown
// after that.
func judgeFalseHealthy(v *facts.Facts) (f Finding) {
	healthy, bound := v.CR.Degraded("False"), v.DetectionBound()+v.Tolerance
	for _, t := range v.Plugins.All {
		expected := v.Expectations.Plugin(t.PluginID)
		able := v.Reporters.Able(t.Node).Intersect(v.Aggregator.InCharge).Intersect(expected)
		for _, bad := range t.Bad {
			settled := able.Clip(bad.Span).Settled(bound)
			if len(settled) == 0 {
				continue
			}
			due := expected.Clip(span.New(settled.Begin(), bad.To))[0]
			f.judgedIn(due)
			for s, c := range span.Within(healthy, span.Set{due}) {
				f.Violate(Violation{At: c.From, From: bad.From, To: due.From, Seq: s.Seq, Node: t.Node, KeyID: t.KeyID,
					Seen:    text.Condition(s.Value) + ", while " + t.String() + " had been failing for " + text.Short(c.From.Sub(bad.From)),
					Allowed: fmt.Sprintf("True or Unknown from %s after the first failure (event %d)", text.Short(bound), bad.Seq)})
			}
		}
	}
	return f
}
