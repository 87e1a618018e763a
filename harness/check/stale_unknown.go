package check

import "github.com/kmsharness/kmsharness/contract"

func staleUnknown() Invariant {
	return Invariant{
		ID:        "STALE-UNKNOWN",
		Statement: "a node whose last successful write is older than 4 I + A makes the rollup Unknown or worse, never False",
		Source:    "Timing that a user may rely on",
		Timed:     AllTimed,
		Judge:     judgeStaleUnknown,
	}
}

func judgeStaleUnknown(v *Facts) (f Finding) {
	healthy := v.objects.degraded("False")
	bound := contract.StaleAfter(v.interval()) + v.latency()
	for _, node := range v.expectations.nodes() {
		settled := v.expectations.ofNode(node).settled(v.latency()).and(v.able.aggregator).and(v.objects.present(node))
		for _, quiet := range v.objects.silences(node) {
			for _, due := range settled.clip(quiet) {
				f.JudgedAt(due.from, due.to)
				for _, s := range healthy {
					if c := s.clip(due); !c.empty() {
						f.Violate(Violation{At: c.from, From: quiet.from.Add(-bound), To: quiet.from, Seq: s.seq, Node: node, Seen: shown(s.cond) + ", while " + node + " had not written for over " + short(v.run.Timing.StaleBound()),
							Allowed: "Unknown or True from " + short(v.run.Timing.StaleBound()+v.tolerance()) + " after its last successful write"})
					}
				}
			}
		}
	}
	return f
}

// silences is when the last write of node that took effect was older than 4 I + A. What was checked by a clock that was ahead is believed for as much longer; one that
// was behind is believed for less.
func (ob *objectFacts) silences(node string) []span {
	var out []span
	writes := ob.facts.requests.landed(node)
	for i, w := range writes {
		ahead := ob.facts.clocks.aheadIn(node, span{w.from.Add(-ob.facts.run.Timing.MaxProbeAge() - ob.facts.tolerance()), w.from.Add(1)})
		bound := contract.StaleAfter(ob.facts.interval()) + ob.facts.latency() + ahead
		until := ob.facts.complete.to
		if i+1 < len(writes) {
			until = writes[i+1].from
		}
		if s := (span{w.to.Add(bound), until}); !s.empty() {
			out = append(out, s)
		}
	}
	return out
}
