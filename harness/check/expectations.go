package check

import (
	"sort"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// expectations are what should report, over time.
type expectations struct {
	facts *Facts
	all   []expectation
}

// expectation is the state of what should report since at.
type expectation struct {
	span
	active bool
	nodes  map[string]history.ExpectedNode
	// From, where that is a node's creation, is cut to the second: until sure the expectation before it may hold still.
	sure time.Time
}

func (xs *expectations) read() {
	for n := range xs.facts.events {
		e := &xs.facts.events[n]
		if e.Kind != history.KindExpected {
			continue
		}
		if n := len(xs.all); n > 0 {
			xs.all[n-1].to = e.At
		}
		x := expectation{span{e.At, xs.facts.complete.to}, e.Expected.KMSActive, map[string]history.ExpectedNode{}, e.At}
		for _, n := range e.Expected.Nodes {
			x.nodes[n.Name] = n
			if n.Since.Equal(e.At) {
				x.sure = e.At.Add(time.Second)
			}
		}
		xs.all = append(xs.all, x)
	}
}

// at returns what should report at t; ok is false before the first event of an expectation.
func (xs *expectations) at(t time.Time) (x expectation, ok bool) {
	i := sort.Search(len(xs.all), func(i int) bool { return xs.all[i].from.After(t) }) - 1
	if i < 0 {
		return expectation{}, false
	}
	return xs.all[i], true
}

// expecting is when KMS was active and ok held of what was expected.
func (xs *expectations) expecting(ok func(expectation) bool) spans {
	var out []span
	for _, x := range xs.all {
		if x.active && ok(x) {
			out = append(out, x.span)
		}
	}
	return merged(out)
}

func (xs *expectations) active() spans { return xs.expecting(func(expectation) bool { return true }) }

func (xs *expectations) ofNode(node string) spans {
	return xs.expecting(func(x expectation) bool { _, ok := x.nodes[node]; return ok })
}

// listed is when a node was expected to report, also while KMS was not active.
func (xs *expectations) listed(node string) spans {
	var out []span
	for _, x := range xs.all {
		if _, ok := x.nodes[node]; ok {
			out = append(out, x.span)
		}
	}
	return merged(out)
}

func (xs *expectations) ofPlugin(p plugin) spans {
	return xs.expecting(func(x expectation) bool {
		for _, k := range x.nodes[p.node].KeyIDs {
			if k == p.keyID {
				return true
			}
		}
		return false
	})
}

// known is since when it is known what should report.
func (xs *expectations) known() spans {
	if len(xs.all) == 0 {
		return nil
	}
	return spans{{xs.all[0].from, xs.facts.complete.to}}
}
