package check

import (
	"slices"
	"time"
)

// Where the ticks of a reporter can be told from its writes, so many gaps in a row that differ by no more than this part of the jitter
// were not drawn: of even draws over twice the jitter not one sequence in 10^13 is like that.
const (
	lockstepGaps = 12
	lockstepPart = 10
)

// judgeLockstep: the jitter is there so that reporters which were started together do not write together for ever after.
func judgeLockstep(v *Facts, f *Finding, node string, writes []write) {
	if v.run.Timing.Jitter <= 0 {
		return
	}
	within := v.run.Timing.Jitter / lockstepPart
	able := v.able.reporter(node)
	for _, life := range v.processes.runsOf(node) {
		var gaps []time.Duration
		for i := 1; i < len(writes); i++ {
			a, b := writes[i-1], writes[i]
			if !life.has(a.from) || !life.has(b.from) || !able.covers(span{a.from, b.from}) || !waited(v, a, b) {
				gaps = nil
				continue
			}
			if gaps = append(gaps, b.from.Sub(a.from)); len(gaps) < lockstepGaps {
				continue
			}
			last := gaps[len(gaps)-lockstepGaps:]
			f.Judged++
			if spread := slices.Max(last) - slices.Min(last); spread <= within {
				f.Violate(Violation{Rule: ruleLockstep, At: b.from, since: writes[i-lockstepGaps].from, Seq: b.seq, Node: node,
					Seen:    "the last " + number(lockstepGaps) + " writes of " + node + " follow each other at intervals that differ by " + spread.String(),
					Allowed: "ticks that are moved by up to " + short(v.run.Timing.Jitter) + " each, so that reporters which were started together do not go on writing together"})
				gaps = nil
			}
		}
	}
}

// waited: between two writes the reporter waited for its tick. One that is kept busy by slow plugins and slow writes begins the next
// tick as soon as it can, and shows no jitter although it has one.
func waited(v *Facts, a, b write) bool {
	return b.from.Sub(a.to) > v.run.Timing.ProbeTimeout && b.from.Sub(a.from) <= v.interval()+v.run.Timing.Jitter+v.tolerance()
}
