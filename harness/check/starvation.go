package check

import (
	"cmp"
	"fmt"
	"time"
)

// CPU starvation is one rule for a run. It is inconclusive if something did not hold and all of this is true of each violation, failed expectation
// and failed action:
//
//  1. It is a matter of time (Invariant.Timed). No delay changes what a write says.
//  2. The machine was starved for longer than the tolerance of the bounds within reach before it.
//  3. Where the violation has a last allowed instant (Violation.To), it is not later than that by more than the starvation and one tick.
//
// Nothing is judged by longer bounds: the run is repeated alone. A subject cannot excuse itself: what its own processes waited does not count, even where it is
// recorded. harness/starvation says what is measured and why that is enough.

// TimedPart is how much of what an invariant judges is a matter of time.
type TimedPart int

const (
	NoneTimed TimedPart = iota // content or order
	SomeTimed                  // the violations that are marked as timed
	AllTimed                   // a bound
)

// starvation is when processes that are not under test could have run and did not.
type starvation struct {
	facts *Facts
	all   []starved
	spans spans
}

// starved is one recorded wait.
type starved struct {
	span
	of process
}

// starvationPeriod is how often the recorder reads how long processes waited: a wait may have been so much earlier than it was recorded.
const starvationPeriod = 500 * time.Millisecond

func (s *starvation) read() {
	var of []span
	for n := range s.facts.events {
		e := s.facts.events[n].Starvation
		if e == nil || underTest(e.Role) {
			continue
		}
		if x := (span{e.From, e.To}).clip(s.facts.complete); !x.empty() {
			s.all, of = append(s.all, starved{x, process{role: e.Role, node: e.Node}}), append(of, x)
		}
	}
	s.spans = merged(of)
}

// reach is how long before a violation starvation can have caused it: 4 I + A, the longest bound of the contract ("Timing that a user may rely on").
// What was delayed earlier has been made good, or has been stale for so long that it must have been reported.
func (s *starvation) reach() time.Duration {
	return max(s.facts.run.Timing.StaleBound(), s.facts.run.Timing.DetectionBound()) + s.facts.tolerance()
}

// explains describes the starvation within reach of something that did not hold, which was known at the given time, so much too late; empty if the tolerance
// allows for that starvation, or the starvation is too short for that delay. What runs out of time in it is tried again one tick later.
func (s *starvation) explains(at time.Time, late time.Duration) string {
	window := span{at.Add(-s.reach()), at.Add(starvationPeriod)}
	total := s.spans.clip(window).total()
	if total <= s.facts.tolerance() || late > total+s.facts.interval()+s.facts.run.Timing.Jitter {
		return ""
	}
	var longest starved
	for _, x := range s.all {
		if !x.clip(window).empty() && x.length() > longest.length() {
			longest = x
		}
	}
	return fmt.Sprintf("%s waited for a processor for %s at +%s, %s in all within %s before that", longest.of, short(longest.length()),
		short(longest.from.Sub(s.facts.complete.from)), short(total), short(s.reach()))
}

// explainsAll describes how starvation explains the first violation of an invariant; empty if it does not explain every one.
func (s *starvation) explainsAll(i Invariant, f Finding) (first string) {
	if f.Count > len(f.Violations) { // so many are not caused by starvation
		return ""
	}
	for _, x := range f.Violations {
		due := cmp.Or(x.To, x.At)
		why := s.explains(latest(x.At, due), x.At.Sub(due))
		if why == "" || i.Timed == NoneTimed || i.Timed == SomeTimed && !x.timed {
			return ""
		}
		first = cmp.Or(first, why)
	}
	return first
}
