package check

import (
	"slices"
	"sort"
	"time"
)

type span struct{ from, to time.Time }

func (s span) empty() bool                  { return !s.from.Before(s.to) }
func (s span) length() time.Duration        { return s.to.Sub(s.from) }
func (s span) has(t time.Time) bool         { return !t.Before(s.from) && t.Before(s.to) }
func (s span) clip(o span) span             { return span{latest(s.from, o.from), earliest(s.to, o.to)} }
func (s span) grow(b, a time.Duration) span { return span{s.from.Add(-b), s.to.Add(a)} }

// spans are disjoint and in order.
type spans []span

// merged makes spans of any intervals.
func merged(in []span) spans {
	begins := func(a, b span) int { return a.from.Compare(b.from) }
	if !slices.IsSortedFunc(in, begins) {
		in = slices.Clone(in)
		slices.SortFunc(in, begins)
	}
	var out spans
	for _, s := range in {
		if s.empty() {
			continue
		}
		if n := len(out); n > 0 && !s.from.After(out[n-1].to) {
			out[n-1].to = latest(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

func (s spans) and(o spans) spans {
	var out spans
	for i, j := 0, 0; i < len(s) && j < len(o); {
		if c := s[i].clip(o[j]); !c.empty() {
			out = append(out, c)
		}
		if s[i].to.Before(o[j].to) {
			i++
		} else {
			j++
		}
	}
	return out
}

func (s spans) or(o spans) spans { return merged(append(append([]span(nil), s...), o...)) }

// not is what of whole is outside s.
func (s spans) not(complete span) spans {
	var out spans
	at := complete.from
	for _, x := range s {
		if gap := (span{at, x.from}).clip(complete); !gap.empty() {
			out = append(out, gap)
		}
		at = latest(at, x.to)
	}
	if rest := (span{at, complete.to}); !rest.empty() {
		out = append(out, rest)
	}
	return out
}

func (s spans) clip(complete span) spans {
	i := sort.Search(len(s), func(i int) bool { return s[i].to.After(complete.from) })
	var out spans
	for ; i < len(s) && s[i].from.Before(complete.to); i++ {
		if c := s[i].clip(complete); !c.empty() {
			out = append(out, c)
		}
	}
	return out
}

// settled drops the first d of each span.
func (s spans) settled(d time.Duration) spans {
	var out spans
	for _, x := range s {
		if x.from = x.from.Add(d); !x.empty() {
			out = append(out, x)
		}
	}
	return out
}

func (s spans) has(t time.Time) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].to.After(t) })
	return i < len(s) && s[i].has(t)
}

func (s spans) covers(complete span) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].to.After(complete.from) })
	return complete.empty() || i < len(s) && !s[i].from.After(complete.from) && !s[i].to.Before(complete.to)
}

func (s spans) touches(o span) bool { return len(s.clip(o)) > 0 }

func (s spans) total() (d time.Duration) {
	for _, x := range s {
		d += x.length()
	}
	return d
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(first time.Time, more ...time.Time) time.Time {
	for _, t := range more {
		if t.After(first) {
			first = t
		}
	}
	return first
}

// settled remembers the table of a scene in which every expected node has a report, no other has, and all of them are sound: then the
// table depends on what the reports say, and not on when they say it. Most of a history is such a scene over and over.
type settled struct {
	reports map[string]*report
	rollups []rollups
}

func (s *settled) allowed(v *Facts, now time.Time, x expectation, reports map[string]*report, graces map[string]grace) []rollups {
	if !isSettled(scene{now: now, interval: v.interval()}, x, reports, graces) {
		return v.truths.allowedAt(now, x, reports, graces)
	}
	if s.reports == nil || !sayTheSame(s.reports, reports) {
		s.reports, s.rollups = reports, v.truths.allowedAt(now, x, reports, graces)
	}
	return s.rollups
}

func isSettled(s scene, x expectation, reports map[string]*report, graces map[string]grace) bool {
	if len(graces) > 0 || len(reports) != len(x.nodes) {
		return false
	}
	for n := range x.nodes {
		if r := reports[n]; r == nil || !s.sound(r) {
			return false
		}
	}
	return true
}

// sayTheSame is whether sound reports of the same nodes differ at most in their times and details.
func sayTheSame(a, b map[string]*report) bool {
	if len(a) != len(b) {
		return false
	}
	for n, r := range a {
		o := b[n]
		if o == nil || len(o.entries) != len(r.entries) {
			return false
		}
		for i, e := range r.entries {
			if f := o.entries[i]; e.keyID != f.keyID || e.status != f.status || e.kekID != f.kekID {
				return false
			}
		}
	}
	return true
}
