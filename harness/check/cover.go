package check

import (
	"sort"
	"time"
)

// unexplained is the part of a standing value (s, as far as it is judged) at whose instants no truth of the last A
// plus tolerance accepts it.
func (tr *truths) unexplained(s span, judged spans, accepts func(truth) bool) spans {
	var explained []span
	for _, t := range tr.near(s) {
		if t.open || accepts(t) {
			explained = append(explained, t.grow(tr.facts.tolerance(), tr.facts.latency()))
		}
	}
	return judged.clip(s).and(merged(explained).not(s))
}

// truthsNear are the truths that may explain what stands in s.
func (tr *truths) near(s span) []truth {
	i := sort.Search(len(tr.all), func(i int) bool { return tr.all[i].to.Add(tr.facts.latency()).After(s.from) })
	j := i
	for j < len(tr.all) && tr.all[j].from.Add(-tr.facts.tolerance()).Before(s.to) {
		j++
	}
	return tr.all[i:j]
}

// allowedNear is what the truths of the last A plus tolerance before at allowed, for people.
func (tr *truths) allowedNear(at time.Time, show func(rollups) string) string {
	seen := map[string]bool{}
	for _, t := range tr.near(span{at, at.Add(1)}) {
		for _, r := range t.allowed {
			seen[show(r)] = true
		}
	}
	return orNothing(joined(sortedKeys(seen), " or "))
}

// firstOf is where a non-empty list of spans begins.
func firstOf(s spans) time.Time { return s[0].from }
