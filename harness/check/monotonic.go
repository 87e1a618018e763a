package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func monotonic() Invariant {
	return Invariant{
		ID:        "MONOTONIC",
		Statement: "lastChecked of one (node, keyID) never goes back, and advances with each probe",
		Source:    "The reporter, emission",
		Judge:     judgeMonotonic,
	}
}

// overlap is when two reporters of a node wrote, each of them what it had asked before its write: the later of two probes may be written first.
// The last write of the one that ended was under way for a write's deadline at most.
func overlap(v *Facts, node string) (out spans) {
	for _, s := range v.processes.doubled[process{role: history.RoleReporter, node: node}] {
		out = append(out, span{s.from, s.to.Add(v.run.Timing.WriteTimeout + v.tolerance())})
	}
	return out
}

func judgeMonotonic(v *Facts) (f Finding) {
	underWay := v.run.Timing.ProbeTimeout + v.run.Timing.WriteTimeout + v.tolerance()
	for _, node := range v.objects.reportingNodes() {
		last := map[string]time.Time{}
		two := overlap(v, node)
		for _, c := range v.objects.reports[node] {
			if c.rep == nil || c.rep.foreign {
				continue
			}
			for _, e := range c.rep.entries {
				at, known := v.clocks.instant(node, e)
				if !known {
					continue
				}
				e.checked = at
				f.JudgedAt(c.at, c.at)
				if before := last[e.keyID]; e.checked.Before(before) && !(two.has(c.at) && before.Sub(e.checked) <= underWay) {
					f.Violate(Violation{At: c.at, Seq: c.seq, Node: node, KeyID: e.keyID, Seen: "lastChecked " + e.checkedText + " after " + before.Format(time.RFC3339Nano),
						Allowed: "the same instant or a later one"})
				}
				last[e.keyID] = latest(last[e.keyID], e.checked)
			}
		}
		if v.run.Connectivity != history.ConnectStream { // a new stream brings again what was reported before
			judgeAdvance(v, &f, node, two)
		}
	}
	return f
}

// judgeAdvance: between two writes of a reporter lies a tick, and the probes of n + 1 writes span n times I − J at least. By a lastChecked of whole seconds
// two of them may look the same.
func judgeAdvance(v *Facts, f *Finding, node string, two spans) {
	writes := v.requests.writesOf(node)
	for _, life := range v.processes.runsOf(node) {
		same := map[string]int{}
		before := map[string]string{}
		for _, w := range writes {
			if !life.has(w.from) || two.has(w.from) {
				continue
			}
			for _, e := range w.entries {
				if _, known := v.clocks.instant(node, e); !known || before[e.keyID] != e.checkedText {
					same[e.keyID], before[e.keyID] = 0, e.checkedText
					continue
				}
				same[e.keyID]++
				f.JudgedAt(w.from, w.from)
				if apart := time.Duration(same[e.keyID]) * v.run.Timing.CadenceMin(); apart > e.precision+v.tolerance() {
					f.Violate(Violation{At: w.from, Seq: w.seq, Node: node, KeyID: e.keyID, Seen: "lastChecked stands still at " + e.checkedText + " in " + number(int64(same[e.keyID]+1)) + " writes",
						Allowed: "the time of another probe in each, at least " + short(v.run.Timing.CadenceMin()) + " after the one before"})
					same[e.keyID] = 0
				}
			}
		}
	}
}
