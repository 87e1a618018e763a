package core

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// node is an expected node as it is seen at one instant.
type node struct {
	name     string
	reported bool // a report stands on the CR, readable or not
	overdue  bool // no report, and the grace for it is over
	entries  []entry
	problems []string
}

// entry is one plugin's answer with its own freshness.
type entry struct {
	contract.Entry
	freshness contract.Freshness
}

// assess is the expected nodes, sorted by name.
func assess(in Input, m Memory) []node {
	out := make([]node, 0, len(m.nodes))
	for name := range m.nodes {
		report, reported := in.Observed.Reports[name]
		n := node{name: name, reported: reported, problems: report.Problems}
		n.overdue = !reported && in.Now.After(graceEnd(m.awaitingSince(name), in.Interval))
		for _, e := range report.Entries {
			n.entries = append(n.entries, entry{e, contract.FreshnessAt(in.Now, e.LastChecked, in.Interval)})
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b node) int { return compare(a.name, b.name) })
	return out
}

// graceEnd is the last instant at which a node without a report is not yet called missing; the same span after
// which a report is stale.
func graceEnd(since time.Time, interval time.Duration) time.Time {
	return since.Add(contract.StaleAfter(interval))
}

// sound is true when the whole report can be believed now: the oldest entry counts, and so does what is malformed.
func (n node) sound() bool {
	notFresh := func(e entry) bool { return e.freshness != contract.Fresh }
	return len(n.entries) > 0 && len(n.problems) == 0 && !slices.ContainsFunc(n.entries, notFresh)
}

// fresh is the entries that are fresh by themselves, even if the rest of the report is not.
func (n node) fresh() []entry {
	return slices.DeleteFunc(slices.Clone(n.entries), func(e entry) bool { return e.freshness != contract.Fresh })
}

// writeKey is the first entry; ok is false when nothing could be read.
func (n node) writeKey() (e entry, ok bool) {
	if len(n.entries) == 0 {
		return entry{}, false
	}
	return n.entries[0], true
}
