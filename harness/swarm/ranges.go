package swarm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Range is seeds from one to another, both included.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func (r Range) String() string {
	if r.From == r.To {
		return fmt.Sprint(r.From)
	}
	return fmt.Sprintf("%d-%d", r.From, r.To)
}

// Shard is the part with index i, from 0, of n parts of nearly the same size; ok is false where there are more parts than seeds and
// nothing is left for this one.
func (r Range) Shard(i, n int64) (part Range, ok bool) {
	all := r.To - r.From + 1
	part = Range{r.From + all/n*i + min(i, all%n), r.From + all/n*(i+1) + min(i+1, all%n) - 1}
	return part, part.From <= part.To
}

// joined puts ranges in order and joins those that touch.
func joined(ranges []Range) []Range {
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, r.To)
			continue
		}
		out = append(out, r)
	}
	return out
}

// overlap is a seed that stands in both.
func overlap(a, b []Range) (Range, bool) {
	for _, x := range a {
		for _, y := range b {
			if both := (Range{max(x.From, y.From), min(x.To, y.To)}); both.From <= both.To {
				return both, true
			}
		}
	}
	return Range{}, false
}

// Missing is what was wanted and not done.
func (s *Summary) Missing() []Range {
	var out []Range
	next := s.Wanted.From
	for _, r := range s.Done {
		if r.From > next {
			out = append(out, Range{next, r.From - 1})
		}
		next = max(next, r.To+1)
	}
	if next <= s.Wanted.To {
		out = append(out, Range{next, s.Wanted.To})
	}
	return out
}

func keywords(ranges []Range) string {
	var out []string
	for _, r := range ranges {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

// ParseRange reads A-B, or one seed.
func ParseRange(text string) (Range, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, errFrom := strconv.ParseInt(first, 10, 63)
	to, errTo := strconv.ParseInt(last, 10, 63)
	if errFrom != nil || errTo != nil || from < 0 || to < from {
		return Range{}, fmt.Errorf("%q: expected a seed, or A-B with A not above B", text)
	}
	return Range{From: from, To: to}, nil
}

// ParseShard is the part of r that I/N names; all of r for an empty text.
func (r Range) ParseShard(text string) (Range, error) {
	if text == "" {
		return r, nil
	}
	index, parts, _ := strings.Cut(text, "/")
	i, errI := strconv.ParseInt(index, 10, 32)
	n, errN := strconv.ParseInt(parts, 10, 32)
	if errI != nil || errN != nil || i < 0 || i >= n {
		return Range{}, fmt.Errorf("%q: expected I/N with I from 0 to N-1", text)
	}
	part, ok := r.Shard(i, n)
	if !ok {
		return Range{}, fmt.Errorf("%s: there are %d parts and fewer seeds (%v), expected no more parts than seeds", text, n, r)
	}
	return part, nil
}
