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
			explained = append(explained, t.span)
		}
	}
	return judged.clip(s).and(merged(explained).not(s))
}

// near are the truths that may explain what stands in s. Their spans are when they may be said.
func (tr *truths) near(s span) []truth {
	var out []truth
	tolerance, latency := tr.facts.tolerance(), tr.facts.latency()
	i := sort.Search(len(tr.all), func(i int) bool { return tr.all[i].to.Add(latency).After(s.from) })
	for ; i < len(tr.all) && tr.all[i].from.Add(-tolerance).Before(s.to); i++ {
		out = append(out, truth{tr.all[i].grow(tolerance, latency), tr.all[i].open, tr.all[i].allowed})
	}
	i = sort.Search(len(tr.overtaken), func(i int) bool { return tr.overtaken[i].to.After(s.from) })
	for ; i < len(tr.overtaken) && tr.overtaken[i].to.Add(-latency).Before(s.to); i++ {
		if t := tr.overtaken[i]; t.from.Before(s.to) {
			out = append(out, t)
		}
	}
	return out
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
