package facts

import (
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// clockPeriod is a span in which a clock was so far ahead of the true time.
type clockPeriod struct {
	span.Span
	ahead time.Duration
}

// readClocks reads the errors of clocks by period, from long before the recording on.
func (v *Facts) readClocks() {
	v.clocks = map[string][]clockPeriod{}
	for e := range v.Each(history.KindClock) {
		v.clocks[e.Clock.Node] = span.Append(v.clockPeriods(e.Clock.Node), clockPeriod{span.New(e.At, v.Period.To), e.Clock.Ahead})
	}
}

func (v *Facts) clockPeriods(node string) []clockPeriod {
	if known, ok := v.clocks[node]; ok {
		return known
	}
	return []clockPeriod{{Span: v.Period.Grow(time.Hour, 0)}}
}

// ClockSettled returns the spans in which the clock of a node, or, with no node, the aggregator's, was correct and its users had recovered from an earlier
// error. A reporter may not write what looks older than what it wrote before, for up to an interval.
func (v *Facts) ClockSettled(node string) span.Set {
	var off []span.Span
	for _, p := range v.clockPeriods(node) {
		if p.ahead != 0 {
			off = append(off, p.Grow(0, v.Interval()+v.Run.Timing.CadenceMax()+v.Tolerance()))
		}
	}
	return span.Merge(off).Complement(v.Period)
}

// clockSetBack is when the clock of a node had been set back, so that what its reporter reports looks older than what it wrote before: until the clock is there
// again. While it looks older by more than an interval, readers call what was written before skewed, and it may be replaced.
func (v *Facts) clockSetBack(node string) span.Set {
	var off []span.Span
	periods, writes := v.clockPeriods(node), v.Writes(node)
	for i, p := range periods[1:] {
		last := sort.Search(len(writes), func(n int) bool { return !writes[n].From.Before(p.From) }) - 1
		if last < 0 {
			continue
		}
		newest := time.Time{} // by its clock
		for _, e := range writes[last].Entries {
			newest = span.Latest(newest, e.Checked)
		}
		upTo := newest
		for _, before := range periods[:i+1] { // a write that failed may have said as much
			if before.To.After(writes[last].From) {
				upTo = span.Latest(upTo, before.To.Add(before.ahead))
			}
		}
		off = append(off, span.New(newest.Add(-v.Interval()-p.ahead), upTo.Add(-p.ahead)).Clip(p.Span))
	}
	return span.Merge(off)
}

// ClockAhead is how far ahead of the true time the clock of a node was in s, at most: what was checked then is believed for as much longer.
func (v *Facts) ClockAhead(node string, s span.Span) (most time.Duration) {
	for _, p := range v.clockPeriods(node) {
		if p.ahead > most && !p.From.After(s.To) && p.To.After(s.From) {
			most = p.ahead
		}
	}
	return most
}

// CheckedAt is when an entry was checked by the true time; false if its node's clock, which was set about then, does not tell.
func (v *Facts) CheckedAt(node string, e Entry) (at time.Time, known bool) {
	found := 0
	for _, p := range v.clockPeriods(node) {
		t := e.Checked.Add(-p.ahead)
		if p.Grow(e.Precision, e.Precision).Contains(t) || p.To.Equal(v.Period.To) && p.ahead == 0 && !t.Before(p.From) {
			at = t
			found++
		}
	}
	return at, found == 1
}

// Dated has the entries of a report whose time of check is known, with the true time in Checked.
func (v *Facts) Dated(node string, entries []Entry) (out []Entry) {
	for _, e := range entries {
		if at, known := v.CheckedAt(node, e); known {
			e.Checked = at
			out = append(out, e)
		}
	}
	return out
}
