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

func (v *view) readClocks() {
	for n := range v.events {
		e := &v.events[n]
		if e.Kind == history.KindClock {
			v.clocks = append(v.clocks, clockChange{e.At, e.Clock.Node, e.Clock.Ahead})
		}
	}
}

// clockOf is a clock from long before the recording on.
func (v *view) clockOf(node string) []clockPeriod {
	if known, ok := v.periods[node]; ok {
		return known
	}
	if v.periods == nil {
		v.periods = map[string][]clockPeriod{}
	}
	v.periods[node] = v.readClockOf(node)
	return v.periods[node]
}

func (v *view) readClockOf(node string) []clockPeriod {
	out := []clockPeriod{{span: span{v.whole.from.Add(-time.Hour), v.whole.to}}}
	for _, c := range v.clocks {
		if c.node != node {
			continue
		}
		last := &out[len(out)-1]
		last.to = c.at
		out = append(out, clockPeriod{span{c.at, v.whole.to}, c.ahead})
	}
	return out
}

// clockRight is when a clock had been right for as long as it takes who goes by it to get over that it was not: a reporter may not
// write what looks older than what it wrote before, for up to an interval.
func (v *view) clockRight(node string) spans {
	var off []span
	for _, p := range v.clockOf(node) {
		if p.ahead != 0 {
			off = append(off, p.grow(0, v.interval()+v.run.Timing.CadenceMax()+v.tolerance()))
		}
	}
	return merged(off).not(v.whole)
}

// setBack is when the clock of a node had been set back, so that what its reporter has to say looks older than what it wrote before: until the clock is there
// again. While it looks older by more than an interval, readers call what was written before skewed, and it may be replaced.
func (v *view) setBack(node string) spans {
	var off []span
	periods, writes := v.clockOf(node), v.writesOf(node)
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
		off = append(off, span{newest.Add(-v.interval() - p.ahead), upTo.Add(-p.ahead)}.clip(p.span))
	}
	return merged(off)
}

// aheadIn is how far ahead of the true time the clock of a node was in s, at most: what was checked then is believed for as much longer.
func (v *view) aheadIn(node string, s span) (most time.Duration) {
	for _, p := range v.clockOf(node) {
		if p.ahead > most && !p.from.After(s.to) && p.to.After(s.from) {
			most = p.ahead
		}
	}
	return most
}

// instant is when an entry was checked by the true time; false if its node's clock, which was set about then, does not tell.
func (v *view) instant(node string, e entry) (at time.Time, known bool) {
	found := 0
	for _, p := range v.clockOf(node) {
		if t := e.checked.Add(-p.ahead); p.grow(e.precision, e.precision).has(t) || p.to.Equal(v.whole.to) && p.ahead == 0 && !t.Before(p.from) {
			at = t
			found++
		}
	}
	return at, found == 1
}
