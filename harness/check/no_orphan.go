package check

import (
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

func noOrphan() Invariant {
	return Invariant{
		ID:        "NO-ORPHAN",
		Statement: "no report of a gone node, and no KMS rollup after KMS was disabled, survives the cleanup bound",
		Source:    "The aggregator, cleanup",
		Timed:     AllTimed,
		Judge:     judgeNoOrphan,
	}
}

func judgeNoOrphan(v *Facts) (f Finding) {
	bound := v.run.Timing.CleanupBound() + v.tolerance()
	for _, node := range v.objects.reportingNodes() {
		gone := v.expectations.ofNode(node).not(v.complete).and(v.expectations.known())
		for _, orphan := range gone.and(v.objects.present(node)) {
			f.JudgedAt(orphan.from, orphan.to)
			for _, late := range overstays(v, orphan, v.requests.touches(node), bound, cleaning(v, node, orphan, bound)) {
				f.Violate(Violation{At: late.from, From: orphan.from, To: late.from, Node: node, Seen: "the report of " + node + " still stands, " + short(late.from.Sub(orphan.from)) + " after the node (or KMS) was gone",
					Allowed: "removed within " + short(bound) + " after its last writer stopped"})
			}
		}
	}
	inactive := v.expectations.active().not(v.complete).and(v.expectations.known())
	for _, t := range contract.RollupTypes() {
		for _, s := range v.objects.rollup(t) {
			if s.cond == nil {
				continue
			}
			for _, orphan := range inactive.clip(s.span) {
				f.JudgedAt(orphan.from, orphan.to)
				for _, late := range overstays(v, orphan, nil, bound, v.able.aggregator) {
					f.Violate(Violation{At: late.from, From: orphan.from, To: late.from, Seq: s.seq, Seen: shown(s.cond) + ", although KMS is not active", Allowed: "absent within " + short(bound) + " after KMS was disabled"})
				}
			}
		}
	}
	return f
}

// cleaning is when an aggregator could have removed the orphaned report of a node. One that claims a time to come, since its node's clock
// was ahead, counts from when the aggregator first saw it.
func cleaning(v *Facts, node string, orphan span, bound time.Duration) spans {
	if v.clocks.aheadIn(node, span{orphan.from.Add(-v.run.Timing.StaleBound()), orphan.to}) > 0 {
		return v.able.inCharge.settled(bound)
	}
	return v.able.aggregator
}

// overstays is when an orphan stood for longer than bound since it became one or was last written, while the
// aggregator could have removed it.
func overstays(v *Facts, orphan span, written []time.Time, bound time.Duration, able spans) spans {
	due := spans{span{orphan.from.Add(bound), orphan.to}}
	var excused []span
	for _, w := range written {
		if !w.After(orphan.to) {
			excused = append(excused, span{w, w.Add(bound)})
		}
	}
	late := due.clip(orphan).and(merged(excused).not(orphan)).and(able)
	return late[:min(1, len(late))] // one violation for one orphan
}

// touches are the instants at which anybody wrote a report of node.
func (rq *requestFacts) touches(node string) []time.Time {
	var out []time.Time
	for _, c := range rq.facts.objects.reports[node] {
		if c.rep != nil {
			out = append(out, c.at)
		}
	}
	for _, w := range rq.writesOf(node) {
		out = append(out, w.to)
	}
	return out
}
