package check

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
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

// starvationPeriod is how often the recorder reads how long processes waited: a wait may have been so much earlier than it was recorded.
const starvationPeriod = 500 * time.Millisecond

// wait is that of a process that is not under test for a processor.
type wait struct {
	span.Span
	process facts.Process
}

// starvation explains what did not hold by the waits of a run.
type starvation struct {
	facts.Bounds
	began time.Time // the run
	waits []wait
	total span.Set
}

func newStarvation(v *facts.Facts) starvation {
	s := starvation{Bounds: v.Bounds, began: v.Period.From}
	for e := range v.Each(history.KindStarvation) {
		x := e.Starvation
		if w := span.New(x.From, x.To).Clip(v.Period); !facts.UnderTest(x.Role) && !w.Empty() {
			s.waits = append(s.waits, wait{w, facts.Process{Role: x.Role, Node: x.Node}})
		}
	}
	s.total = span.All(s.waits)
	return s
}

// reach is how long before a violation starvation can have caused it: 4 I + A, the longest bound of the contract ("Timing that a user may rely on").
// What was delayed earlier has been made good, or has been stale for so long that it must have been reported.
func (s starvation) reach() time.Duration {
	return max(s.StaleBound(), s.DetectionBound()) + s.Tolerance
}

// explains describes the starvation within reach of something that did not hold, which was known at the given time, so much too late; empty if the tolerance
// allows for that starvation, or the starvation is too short for that delay. What runs out of time in it is tried again one tick later.
func (s starvation) explains(at time.Time, late time.Duration) string {
	window := span.New(at.Add(-s.reach()), at.Add(starvationPeriod))
	total := s.total.Clip(window).Total()
	if total <= s.Tolerance || late > total+s.Interval+s.Jitter {
		return ""
	}
	var longest wait
	for x := range span.Within(s.waits, span.Set{window}) {
		if x.Length() > longest.Length() {
			longest = x
		}
	}
	return fmt.Sprintf("%s waited for a processor for %s at +%s, %s in all within %s before that", longest.process, text.Short(longest.Length()),
		text.Short(longest.From.Sub(s.began)), text.Short(total), text.Short(s.reach()))
}

// explainsAll describes how starvation explains the first violation of an invariant; empty if it does not explain every one.
func (s starvation) explainsAll(i Invariant, f Finding) (first string) {
	if f.Count > len(f.Violations) { // so many are not caused by starvation
		return ""
	}
	for _, x := range f.Violations {
		due := cmp.Or(x.To, x.At)
		why := s.explains(span.Latest(x.At, due), x.At.Sub(due))
		if why == "" || i.Timed == NoneTimed || i.Timed == SomeTimed && !x.Timed {
			return ""
		}
		first = cmp.Or(first, why)
	}
	return first
}
