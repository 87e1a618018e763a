package check

import (
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// clockChange is a clock that was set: that of a node, or, with no node, that of the aggregators.
type clockChange struct {
	at    time.Time
	node  string
	ahead time.Duration
}

// clockPeriod is a span in which a clock was so far ahead of the true time.
type clockPeriod struct {
	span
	ahead time.Duration
}

// clockFacts are the clocks of nodes and aggregators.
type clockFacts struct {
	facts   *Facts
	changes []clockChange
	periods map[string][]clockPeriod // by node; memo: of
}

func (ck *clockFacts) read() {
	for n := range ck.facts.events {
		e := &ck.facts.events[n]
		if e.Kind == history.KindClock {
			ck.changes = append(ck.changes, clockChange{e.At, e.Clock.Node, e.Clock.Ahead})
		}
	}
}

// of returns the errors of a clock by period, from long before the recording on.
func (ck *clockFacts) of(node string) []clockPeriod {
	if known, ok := ck.periods[node]; ok {
		return known
	}
	if ck.periods == nil {
		ck.periods = map[string][]clockPeriod{}
	}
	ck.periods[node] = ck.readOf(node)
	return ck.periods[node]
}

func (ck *clockFacts) readOf(node string) []clockPeriod {
	out := []clockPeriod{{span: span{ck.facts.complete.from.Add(-time.Hour), ck.facts.complete.to}}}
	for _, c := range ck.changes {
		if c.node != node {
			continue
		}
		last := &out[len(out)-1]
		last.to = c.at
		out = append(out, clockPeriod{span{c.at, ck.facts.complete.to}, c.ahead})
	}
	return out
}

// settled returns the spans in which the clock of a node, or the aggregator's, was correct and its users had recovered from an earlier error. A
// reporter may not write what looks older than what it wrote before, for up to an interval.
func (ck *clockFacts) settled(node string) spans {
	var off []span
	for _, p := range ck.of(node) {
		if p.ahead != 0 {
			off = append(off, p.grow(0, ck.facts.interval()+ck.facts.run.Timing.CadenceMax()+ck.facts.tolerance()))
		}
	}
	return merged(off).not(ck.facts.complete)
}

// setBack is when the clock of a node had been set back, so that what its reporter has to say looks older than what it wrote before: until the clock is there
// again. While it looks older by more than an interval, readers call what was written before skewed, and it may be replaced.
func (ck *clockFacts) setBack(node string) spans {
	var off []span
	periods, writes := ck.of(node), ck.facts.requests.writesOf(node)
	for i := range periods[1:] {
		p := periods[i+1]
		last := sort.Search(len(writes), func(n int) bool { return !writes[n].from.Before(p.from) }) - 1
		if last < 0 {
			continue
		}
		newest := time.Time{} // by its clock
		for _, e := range writes[last].entries {
			newest = latest(newest, e.checked)
		}
		upTo := newest
		for _, before := range periods[:i+1] { // a write that failed may have said as much
			if before.to.After(writes[last].from) {
				upTo = latest(upTo, before.to.Add(before.ahead))
			}
		}
		off = append(off, span{newest.Add(-ck.facts.interval() - p.ahead), upTo.Add(-p.ahead)}.clip(p.span))
	}
	return merged(off)
}

// aheadIn is how far ahead of the true time the clock of a node was in s, at most: what was checked then is believed for as much longer.
func (ck *clockFacts) aheadIn(node string, s span) (most time.Duration) {
	for _, p := range ck.of(node) {
		if p.ahead > most && !p.from.After(s.to) && p.to.After(s.from) {
			most = p.ahead
		}
	}
	return most
}

// instant is when an entry was checked by the true time; false if its node's clock, which was set about then, does not tell.
func (ck *clockFacts) instant(node string, e entry) (at time.Time, known bool) {
	found := 0
	for _, p := range ck.of(node) {
		if t := e.checked.Add(-p.ahead); p.grow(e.precision, e.precision).has(t) || p.to.Equal(ck.facts.complete.to) && p.ahead == 0 && !t.Before(p.from) {
			at = t
			found++
		}
	}
	return at, found == 1
}
