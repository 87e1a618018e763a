package invariants

import (
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

func staleUnknown() Invariant {
	return Invariant{
		ID:        "STALE-UNKNOWN",
		Statement: "a node whose last successful write is older than 4 I + A makes the rollup Unknown or worse, never False",
		Source:    "Timing that a user may rely on",
		Timed:     AllTimed,
		Judge:     judgeStaleUnknown,
	}
}

func judgeStaleUnknown(v *facts.Facts) (f Finding) {
	healthy := v.Degraded("False")
	bound := contract.StaleAfter(v.Interval()) + v.Latency()
	for _, node := range v.ExpectedNodes() {
		settled := v.NodeExpected(node).Settled(v.Latency()).Intersect(v.AggregatorAble).Intersect(v.Reported(node))
		for _, quiet := range silences(v, node) {
			for _, due := range settled.Clip(quiet) {
				f.judgedIn(due)
				for s, c := range span.Within(healthy, span.Set{due}) {
					f.Violate(Violation{At: c.From, From: quiet.From.Add(-bound), To: quiet.From, Seq: s.Seq, Node: node, Seen: text.Condition(s.Value) + ", while " + node + " had not written for over " + text.Short(v.Run.Timing.StaleBound()),
						Allowed: "Unknown or True from " + text.Short(v.Run.Timing.StaleBound()+v.Tolerance()) + " after its last successful write"})
				}
			}
		}
	}
	return f
}

// silences is when the last write of node that took effect was older than 4 I + A. What was checked by a clock that was ahead is believed for as much longer; one that
// was behind is believed for less.
func silences(v *facts.Facts, node string) []span.Span {
	var out []span.Span
	writes := v.Landed(node)
	for i, w := range writes {
		ahead := v.ClockAhead(node, span.New(w.From.Add(-v.Run.Timing.MaxProbeAge()-v.Tolerance()), w.From.Add(1)))
		until := v.Period.To
		if i+1 < len(writes) {
			until = writes[i+1].From
		}
		if s := span.New(w.To.Add(contract.StaleAfter(v.Interval())+v.Latency()+ahead), until); !s.Empty() {
			out = append(out, s)
		}
	}
	return out
}
