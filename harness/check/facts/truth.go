package facts

import (
	"slices"
	"sort"

	"github.com/kmsharness/kmsharness/harness/check/span"
)

// Truth is what the rollups had to say in a span of time: any of Allowed. While nothing is required (KMS inactive,
// nothing known yet) Open is set.
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
	// overtaken are those of reports that were read before they changed, by a clock that was read after that; their spans are when they may be said.
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

// Unexplained is the part of a standing value (s, as far as it is judged) at whose instants no truth of the last A
// plus tolerance accepts it.
func (ts *Truths) Unexplained(s span.Span, judged span.Set, accepts func(Rollups) bool) span.Set {
	explained := span.Where(ts.Near(s), func(t Truth) bool { return t.Open || t.Allows(accepts) })
	return judged.Clip(s).Intersect(explained.Complement(s))
}

// Near are the truths that may explain what stands in s. Their spans are when they may be said.
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
