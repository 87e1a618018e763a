package facts

import (
	"iter"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Log has the events of a history. Events end where teardown begins: the harness then stops processes in any order, and
// nothing that follows from it is judged.
type Log struct {
	Events   []history.Event                 // in time, until teardown began
	Recorded []history.Event                 // as recorded, to the end
	Period   span.Span                       // the judged part of the run: from the first of Events until just after the last
	Phases   map[history.PhaseName]time.Time // when each began for the first time
}

func newLog(recorded []history.Event) Log {
	l := Log{Events: judged(history.InTime(recorded)), Recorded: recorded, Phases: map[history.PhaseName]time.Time{}}
	if n := len(l.Events); n > 0 {
		l.Period = span.New(l.Events[0].At, l.Events[n-1].At.Add(time.Nanosecond))
	}
	for e := range l.Each(history.KindPhase) {
		if _, seen := l.Phases[e.Phase.Name]; !seen {
			l.Phases[e.Phase.Name] = e.At
		}
	}
	return l
}

// Each yields the judged events of some kinds, in time.
func (l *Log) Each(kinds ...history.Kind) iter.Seq[*history.Event] { return each(l.Events, kinds) }

// EachRecorded yields also what was recorded after teardown had begun, in the order of recording.
func (l *Log) EachRecorded(kinds ...history.Kind) iter.Seq[*history.Event] {
	return each(l.Recorded, kinds)
}

// It yields pointers into the slice, since an event is large (two dozen fields for payloads) and is not copied for each
// invariant.
func each(events []history.Event, kinds []history.Kind) iter.Seq[*history.Event] {
	return func(yield func(*history.Event) bool) {
		for n := range events {
			if e := &events[n]; slices.Contains(kinds, e.Kind) && !yield(e) {
				return
			}
		}
	}
}

// judged is the events until teardown began.
func judged(events []history.Event) []history.Event {
	isEnd := func(e *history.Event) bool { return e.Kind == history.KindEnd } // when it was written says nothing
	n := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.KindPhase && e.Phase.Name == history.PhaseEnd })
	if n < 0 {
		return Without(events, isEnd)
	}
	return slices.Concat(Without(events[:n], isEnd), underWay(events[n:], events[n].At), events[n:n+1])
}

// Without has the events that are not bad; it returns events itself if none is, for there are many.
func Without(events []history.Event, bad func(*history.Event) bool) []history.Event {
	isBad := func(e history.Event) bool { return bad(&e) }
	if slices.ContainsFunc(events, isBad) {
		return slices.DeleteFunc(slices.Clone(events), isBad)
	}
	return slices.Clip(events)
}

// underWay is the requests that an API server had received at the end and answered afterwards: what they wrote may have
// been seen before. And it is the last read of the objects, which is made when all else is over. They are dated to the end.
// Without them a state of the CR would have no request that made it, and OWNERSHIP would call it foreign.
func underWay(rest []history.Event, end time.Time) (out []history.Event) {
	for _, e := range rest {
		if e.Kind == history.KindData || e.Kind == history.KindStorageInventory || e.Kind == history.KindRequest && !e.Request.Received.After(end) {
			e.At = end
			out = append(out, e)
		}
	}
	return out
}
