package check

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func freshOnly() Invariant {
	return Invariant{
		ID:        "FRESH-ONLY",
		Statement: "no write carries a probe older than one interval plus its deadlines: nothing is queued",
		Source:    "The reporter, emission",
		judge:     judgeFreshOnly,
	}
}

func judgeFreshOnly(v *view) (f Finding) {
	bound := v.run.Timing.MaxProbeAge() + v.tolerance()
	for _, node := range v.reportingNodes() {
		flowing := v.flowing(node)
		for _, w := range v.writesOf(node) {
			for _, e := range w.entries {
				at, known := v.instant(node, e)
				if !known {
					continue
				}
				e.checked = at
				if !flowing.covers(span{e.checked, w.from}) {
					continue // bytes already sent may arrive late through no fault of the reporter
				}
				f.judgedAt(w.from, w.from)
				if age := w.from.Sub(e.checked.Add(e.precision)); age > bound {
					f.violate(Violation{At: w.from, From: e.checked, To: e.checked.Add(bound), Seq: w.seq, Node: node, KeyID: e.keyID, Seen: "a write carries the probe of " + e.checkedText + ", " + short(age) + " old",
						Allowed: "at most " + short(bound) + " old (I + R + W and tolerance)"})
				}
			}
		}
	}
	return f
}

// flowing is when nothing on the reporter's way held bytes back: a paused API server or a cut, slow or mute link delivers
// later what was sent in time. A killed one does not.
func (v *view) flowing(node string) spans {
	wide := span{v.whole.from.Add(-time.Hour), v.whole.to} // probes may be from before the recording
	out := spans{wide}
	for _, p := range append(v.processes(history.RoleAPIServer), v.processes(history.RoleEtcd)...) {
		if p.node == node || p.node == "" || v.run.Connectivity == connectService {
			out = out.and(v.in(p, procPaused).not(wide))
		}
	}
	holds := func(l linkChange) bool { return l.state != history.LinkReset && l.from != history.RoleAggregator }
	return out.and(v.linkFine(holds).not(v.whole).not(wide))
}
