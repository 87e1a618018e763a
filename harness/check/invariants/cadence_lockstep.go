package invariants

import (
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
)

// Where the ticks of a reporter can be told from its writes, so many gaps in a row that differ by no more than this part of the jitter
// were not drawn: of even draws over twice the jitter not one sequence in 10^13 is like that.
const (
	lockstepGaps = 12
	lockstepPart = 10
)

// judgeLockstep: the jitter is there so that reporters which were started together do not write together for ever after.
func judgeLockstep(v *facts.Facts, f *Finding, node string) {
	jitter := v.Run.Timing.Jitter
	if jitter <= 0 {
		return
	}
	writes, able := v.Writes(node), v.ReporterAble(node)
	for _, run := range v.ReporterRuns(node) {
		var gaps []time.Duration
		for i := 1; i < len(writes); i++ {
			a, b := writes[i-1], writes[i]
			if !run.Contains(a.From) || !run.Contains(b.From) || !able.Covers(span.New(a.From, b.From)) || !waited(v, a, b) {
				gaps = nil
				continue
			}
			if gaps = append(gaps, b.From.Sub(a.From)); len(gaps) < lockstepGaps {
				continue
			}
			last := gaps[len(gaps)-lockstepGaps:]
			f.Judged++
			if spread := slices.Max(last) - slices.Min(last); spread <= jitter/lockstepPart {
				f.Violate(Violation{Rule: ruleLockstep, At: b.From, Since: writes[i-lockstepGaps].From, Seq: b.Seq, Node: node,
					Seen:    fmt.Sprintf("the last %d writes of %s follow each other at intervals that differ by %s", lockstepGaps, node, spread),
					Allowed: "ticks that are moved by up to " + text.Short(jitter) + " each, so that reporters which were started together do not go on writing together"})
				gaps = nil
			}
		}
	}
}

// waited: between two writes the reporter waited for its tick. One that is kept busy by slow plugins and slow writes begins the next
// tick as soon as it can, and shows no jitter although it has one.
func waited(v *facts.Facts, a, b facts.Write) bool {
	return b.From.Sub(a.To) > v.Run.Timing.ProbeTimeout && b.From.Sub(a.From) <= v.Interval()+v.Run.Timing.Jitter+v.Tolerance()
}
