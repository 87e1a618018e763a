package invariants

import (
	"slices"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

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

// landed is the writes of node's reporter that took effect: the successful ones, and those of unknown outcome whose report the CR shows.
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

// silences is when the last write of node that took effect was older than 4 I + A. What was checked by a clock that was ahead is believed for as much longer; one that
// was behind is believed for less.
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
