package facts

import (
	"slices"
	"sort"

	"github.com/kmsharness/kmsharness/harness/check/span"
)

// Truth is what the rollups had to say in a span of time. Several values are allowed where the contract, or what the
// history records, leaves room: for example while the grace of a missing node may or may not have ended. While nothing
// is required (KMS is inactive, or no state of the CR is known yet) Open is set, and any value is accepted.
type Truth struct {
	span.Span
	Open    bool
	Allowed []Rollups
}

// Allows reports whether one of the allowed rollups is as ok demands.
func (t Truth) Allows(ok func(Rollups) bool) bool { return slices.ContainsFunc(t.Allowed, ok) }

func (t Truth) equal(o Truth) bool {
	return t.Open == o.Open && slices.EqualFunc(t.Allowed, o.Allowed, Rollups.equal)
}

// Truths are what the rollups had to say over time.
type Truths struct {
	All []Truth
	// overtaken has the truths of reports that were read just before they changed, and judged by a clock that was read
	// just after. Such a read is no error: reading the CR and reading the clock are two steps. Their spans are when such
	// a rollup may be written.
	overtaken []Truth
	bounds    Bounds
}

// add adds a truth, or extends the one before if it is the same.
func (ts *Truths) add(t Truth) {
	if n := len(ts.All); n > 0 && ts.All[n-1].To.Equal(t.From) && ts.All[n-1].equal(t) {
		ts.All[n-1].To = t.To
		return
	}
	ts.All = append(ts.All, t)
}

// Unexplained returns the part of a standing value (s, as far as it is judged) at whose instants no truth of the last A
// plus tolerance accepts it. A value is judged at each instant, not once: a rollup that was right when it was written
// becomes wrong A after the truth has changed.
func (ts *Truths) Unexplained(s span.Span, judged span.Set, accepts func(Rollups) bool) span.Set {
	explained := span.Where(ts.Near(s), func(t Truth) bool { return t.Open || t.Allows(accepts) })
	return judged.Clip(s).Intersect(explained.Complement(s))
}

// Near returns the truths that may explain what stands in s. Each truth may be written from one tolerance before it
// began (clocks of two records differ) until A plus tolerance after it ended (the aggregator has that long to follow).
// Both lists are sorted by time, hence the binary searches.
func (ts *Truths) Near(s span.Span) []Truth {
	var out []Truth
	tolerance, latency := ts.bounds.Tolerance, ts.bounds.Latency()
	i := sort.Search(len(ts.All), func(i int) bool { return ts.All[i].To.Add(latency).After(s.From) })
	for ; i < len(ts.All) && ts.All[i].From.Add(-tolerance).Before(s.To); i++ {
		t := ts.All[i]
		t.Span = t.Grow(tolerance, latency)
		out = append(out, t)
	}
	i = sort.Search(len(ts.overtaken), func(i int) bool { return ts.overtaken[i].To.After(s.From) })
	for ; i < len(ts.overtaken) && ts.overtaken[i].To.Add(-latency).Before(s.To); i++ {
		if t := ts.overtaken[i]; t.From.Before(s.To) {
			out = append(out, t)
		}
	}
	return out
}
