package invariants

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

func judgeFalseHealthy(v *facts.Facts) (f Finding) {
	healthy := v.CR.Degraded("False")
	for _, t := range v.Plugins.All {
		expected := v.Expectations.Plugin(t.PluginID)
		able := v.Reporters.Able(t.Node).Intersect(v.Aggregator.InCharge).Intersect(expected)
		for _, bad := range t.Bad {
			due, judged := detectable(v, bad, able, expected)
			if !judged {
				continue
			}
			f.judgedIn(due)
			for s, c := range span.Within(healthy, span.Set{due}) {
				f.Violate(Violation{At: c.From, From: bad.From, To: due.From, Seq: s.Seq, Node: t.Node, KeyID: t.KeyID,
					Seen:    text.Condition(s.Value) + ", while " + t.String() + " had been failing for " + text.Short(c.From.Sub(bad.From)),
					Allowed: fmt.Sprintf("True or Unknown from %s after the first failure (event %d)", text.Short(v.DetectionBound()+v.Tolerance), bad.Seq)})
			}
		}
	}
	return f
}

// detectable is the part of a bad run in which the rollup must show it: from where reporter and aggregator could do
// their work for the whole detection bound, to the end of the run, while the plugin is expected.
func detectable(v *facts.Facts, bad facts.BadRun, able, expected span.Set) (due span.Span, judged bool) {
	settled := able.Clip(bad.Span).Settled(v.DetectionBound() + v.Tolerance)
	if len(settled) == 0 {
		return due, false
	}
	for _, x := range expected.Clip(bad.Span) {
		if x.Contains(settled.Begin()) {
			return span.New(settled.Begin(), x.To), true
		}
	}
	return due, false
}
