// Package span has spans of time, sets of them, and sequences of states that follow one another.
package span

import (
	"iter"
	"slices"
	"sort"
	"time"
)

// Span is the time from From until just before To.
type Span struct{ From, To time.Time }

// New is the span from one instant until just before another; it is empty if that is no later.
func New(from, to time.Time) Span { return Span{from, to} }

func (s Span) Empty() bool               { return !s.From.Before(s.To) }
func (s Span) Length() time.Duration     { return s.To.Sub(s.From) }
func (s Span) Contains(t time.Time) bool { return !t.Before(s.From) && t.Before(s.To) }
func (s Span) Clip(o Span) Span          { return Span{Latest(s.From, o.From), Earliest(s.To, o.To)} }

// Grow begins a span earlier and ends it later; with negative durations it shrinks.
func (s Span) Grow(before, after time.Duration) Span {
	return Span{s.From.Add(-before), s.To.Add(after)}
}

// When is the span of what embeds one.
func (s Span) When() Span { return s }

func (s *Span) end(t time.Time) { s.To = t }

// Set has disjoint spans in order.
type Set []Span

// Merge makes a set of any spans.
func Merge(in []Span) Set {
	begins := func(a, b Span) int { return a.From.Compare(b.From) }
	if !slices.IsSortedFunc(in, begins) {
		in = slices.Clone(in)
		slices.SortFunc(in, begins)
	}
	var out Set
	for _, s := range in {
		if s.Empty() {
			continue
		}
		if n := len(out); n > 0 && !s.From.After(out[n-1].To) {
			out[n-1].To = Latest(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Grown merges spans of which each begins so much earlier and ends so much later.
func Grown(in []Span, before, after time.Duration) Set {
	return Map(in, func(s Span) Span { return s.Grow(before, after) })
}

// Intersect has what is in both sets.
func (s Set) Intersect(o Set) Set {
	var out Set
	for i, j := 0, 0; i < len(s) && j < len(o); {
		if c := s[i].Clip(o[j]); !c.Empty() {
			out = append(out, c)
		}
		if s[i].To.Before(o[j].To) {
			i++
		} else {
			j++
		}
	}
	return out
}

// Union has what is in either set.
func (s Set) Union(o Set) Set { return Merge(slices.Concat(s, o)) }

// Complement is what of complete is not in the set.
func (s Set) Complement(complete Span) Set {
	var out Set
	at := complete.From
	for _, x := range s {
		if gap := (Span{at, x.From}).Clip(complete); !gap.Empty() {
			out = append(out, gap)
		}
		at = Latest(at, x.To)
	}
	if rest := (Span{at, complete.To}); !rest.Empty() {
		out = append(out, rest)
	}
	return out
}

// Clip has what of the set is in complete.
func (s Set) Clip(complete Span) Set { return s[s.search(complete.From):].Intersect(Set{complete}) }

// search returns the index of the first span that ends after t.
func (s Set) search(t time.Time) int {
	return sort.Search(len(s), func(i int) bool { return s[i].To.After(t) })
}

// Settled drops the first d of each span.
func (s Set) Settled(d time.Duration) Set {
	var out Set
	for _, x := range s {
		if x.From = x.From.Add(d); !x.Empty() {
			out = append(out, x)
		}
	}
	return out
}

func (s Set) Contains(t time.Time) bool {
	i := s.search(t)
	return i < len(s) && s[i].Contains(t)
}

// Covers reports whether all of a span is in the set.
func (s Set) Covers(o Span) bool {
	i := s.search(o.From)
	return o.Empty() || i < len(s) && !s[i].From.After(o.From) && !s[i].To.Before(o.To)
}

// Overlaps reports whether any part of a span is in the set.
func (s Set) Overlaps(o Span) bool {
	i := s.search(o.From)
	return !o.Empty() && i < len(s) && s[i].From.Before(o.To)
}

// Begin is where a set begins that is not empty.
func (s Set) Begin() time.Time { return s[0].From }

// Total is the length of all spans together.
func (s Set) Total() (d time.Duration) {
	for _, x := range s {
		d += x.Length()
	}
	return d
}

// State is anything that embeds the span in which it holds.
type State interface{ When() Span }

// Where is when a state held that ok accepts.
func Where[S State](states []S, ok func(S) bool) Set {
	return Map(states, func(s S) Span {
		if ok(s) {
			return s.When()
		}
		return Span{}
	})
}

// All is when any state held.
func All[S State](states []S) Set { return Map(states, S.When) }

// Map is the span of each value, merged; an empty one is none.
func Map[T any](values []T, of func(T) Span) Set {
	var out []Span
	for _, x := range values {
		if s := of(x); !s.Empty() {
			out = append(out, s)
		}
	}
	return Merge(out)
}

// Append adds a state, with which the one before it ends.
func Append[S State, P interface {
	*S
	end(time.Time)
}](states []S, next S) []S {
	if n := len(states); n > 0 {
		P(&states[n-1]).end(next.When().From)
	}
	return append(states, next)
}

// Last is the last state that had begun at an instant; false before the first. States are many, hence the binary search.
func Last[S State](states []S, t time.Time) (s S, begun bool) {
	i := sort.Search(len(states), func(i int) bool { return states[i].When().From.After(t) })
	if i == 0 {
		return s, false
	}
	return states[i-1], true
}

// Within yields the parts of states that are in a set.
func Within[S State](states []S, set Set) iter.Seq2[S, Span] {
	return func(yield func(S, Span) bool) {
		for _, s := range states {
			for _, part := range set.Clip(s.When()) {
				if !yield(s, part) {
					return
				}
			}
		}
	}
}

func Earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func Latest(first time.Time, more ...time.Time) time.Time {
	for _, t := range more {
		if t.After(first) {
			first = t
		}
	}
	return first
}
