package swarm

import (
	"fmt"
	"strconv"
	"strings"
)

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
