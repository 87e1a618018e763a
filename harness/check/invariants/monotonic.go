package invariants

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// judgeMonotonic judges the states of each entry on the CR, corrected by the clock of its node. Two reporters of a node,
// during a handover, may write in the other order than they probed, by R + W at most.
func judgeMonotonic(v *facts.Facts) (f Finding) {
	underWay := v.ProbeTimeout + v.WriteTimeout + v.Tolerance
	for _, node := range v.Reports.Nodes() {
		last := map[string]time.Time{}
		two := v.Reporters.Handovers(node)
		for _, s := range v.Reports.Own(node) {
			for _, e := range v.Clocks.Dated(node, s.Value.Entries) {
				f.JudgedAt(s.From, s.From)
				if before := last[e.KeyID]; e.Checked.Before(before) && !(two.Contains(s.From) && before.Sub(e.Checked) <= underWay) {
					f.Violate(Violation{At: s.From, Seq: s.Seq, Node: node, KeyID: e.KeyID, Seen: "lastChecked " + e.CheckedText + " after " + before.Format(time.RFC3339Nano),
						Allowed: "the same instant or a later one"})
				}
				last[e.KeyID] = span.Latest(last[e.KeyID], e.Checked)
			}
		}
		if v.Run.Connectivity != history.ConnectStream { // a new stream brings again what was reported before
			judgeAdvance(v, &f, node, two)
		}
	}
	return f
}

// judgeAdvance judges that each write has the time of another probe: the probes of n + 1 writes span n (I − J) at least.
// With a lastChecked of whole seconds, writes within a second may look the same.
func judgeAdvance(v *facts.Facts, f *Finding, node string, two span.Set) {
	for _, run := range v.Reporters.Runs(node) {
		same, before := map[string]int{}, map[string]string{}
		for _, w := range v.Reporters.Writes(node) {
			if !run.Contains(w.From) || two.Contains(w.From) {
				continue
			}
			for _, e := range w.Entries {
				if _, known := v.Clocks.CheckedAt(node, e); !known || before[e.KeyID] != e.CheckedText {
					same[e.KeyID], before[e.KeyID] = 0, e.CheckedText
					continue
				}
				same[e.KeyID]++
				f.JudgedAt(w.From, w.From)
				if apart := time.Duration(same[e.KeyID]) * v.CadenceMin(); apart > e.Precision+v.Tolerance+v.BackedOff(e.Status) {
					f.Violate(Violation{At: w.From, Seq: w.Seq, Node: node, KeyID: e.KeyID, Seen: fmt.Sprintf("lastChecked stands still at %s in %d writes", e.CheckedText, same[e.KeyID]+1),
						Allowed: "the time of another probe in each, at least " + text.Short(v.CadenceMin()) + " after the one before"})
					same[e.KeyID] = 0
				}
			}
		}
	}
}
