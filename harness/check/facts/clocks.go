package facts

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/history"
)

// clockPeriod is a span in which a clock differed from the true time by a constant. ahead is negative for a clock that
// was set back.
type clockPeriod struct {
	span.Span
	ahead time.Duration
}

// Clocks tells how wrong the clock of each node was, and, with no node, the aggregator's.
type Clocks struct {
	periods map[string][]clockPeriod // of the clocks that were ever set
	period  span.Span
	bounds  Bounds
}

func newClocks(log *Log, bounds Bounds) *Clocks {
	c := &Clocks{map[string][]clockPeriod{}, log.Period, bounds}
	for e := range log.Each(history.KindClock) {
		c.periods[e.Clock.Node] = span.Append(c.of(e.Clock.Node), clockPeriod{span.New(e.At, log.Period.To), e.Clock.Ahead})
	}
	return c
}

// of returns the errors of a clock by period. A clock that was never set was always right; its period begins an hour
// before the recording, so that the first reports, which may be older than the first event, lie in it.
func (c *Clocks) of(node string) []clockPeriod {
	if known, ok := c.periods[node]; ok {
		return known
	}
	return []clockPeriod{{Span: c.period.Grow(time.Hour, 0)}}
}

// Settled returns the spans in which a clock was correct and its users had recovered from an earlier error. After a
// clock has been set back, a reporter may not write what looks older than what it wrote before (MONOTONIC), for up to an
// interval; then it needs one regular write, CadenceMax.
func (c *Clocks) Settled(node string) span.Set {
	off := span.Where(c.of(node), func(p clockPeriod) bool { return p.ahead != 0 })
	return span.Grown(off, 0, c.bounds.Interval+c.bounds.CadenceMax()+c.bounds.Tolerance).Complement(c.period)
}

// Ahead returns how far ahead of the true time a clock was in s, at most. An entry that was checked then has a
// lastChecked in the future, so that a reader believes it for as much longer than four intervals.
func (c *Clocks) Ahead(node string, s span.Span) (most time.Duration) {
	for _, p := range c.of(node) {
		if p.ahead > most && !p.From.After(s.To) && p.To.After(s.From) {
			most = p.ahead
		}
	}
	return most
}

// CheckedAt returns when an entry was checked by the true time; false if its node's clock, which was set about then,
// does not tell. Each period of the clock gives one candidate, lastChecked minus its error. The result is known only if
// exactly one candidate lies in its own period: around a step of the clock two may, or none.
func (c *Clocks) CheckedAt(node string, e Entry) (at time.Time, known bool) {
	found := 0
	for _, p := range c.of(node) {
		t := e.Checked.Add(-p.ahead)
		if p.Grow(e.Precision, e.Precision).Contains(t) || p.To.Equal(c.period.To) && p.ahead == 0 && !t.Before(p.From) {
			at = t
			found++
		}
	}
	return at, found == 1
}

// Dated has the entries of a report whose time of check is known, with the true time in Checked.
func (c *Clocks) Dated(node string, entries []Entry) (out []Entry) {
	for _, e := range entries {
		if at, known := c.CheckedAt(node, e); known {
			e.Checked = at
			out = append(out, e)
		}
	}
	return out
}
