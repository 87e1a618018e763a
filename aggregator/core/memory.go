package core

import (
	"crypto/sha256"
	"maps"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

// Memory is what one step must know of the steps before it. The zero value is an aggregator that has just started.
// A Memory is never changed in place; every step returns a new one.
type Memory struct {
	started  bool
	kmsSince time.Time // zero while KMS is not active
	nodes    map[string]expectation
	orphans  map[string]orphan
}

// expectation is what is remembered of an expected node.
type expectation struct {
	created  time.Time
	since    time.Time // awaiting a report since, as far as the node itself goes
	reported bool
}

// orphan is a report that nobody should write any more.
type orphan struct {
	evict       bool // its node was seen to go: remove at once
	fingerprint [sha256.Size]byte
	since       time.Time // this very report first seen
}

// second is the precision of the API's own times. One of them means "within the second that begins here"; it is
// read as its end, so that no grace ends early.
const second = time.Second

// awaitingSince is the instant from which a node without a report has its grace.
func (m Memory) awaitingSince(name string) time.Time { return later(m.nodes[name].since, m.kmsSince) }

// remember takes in what this step sees.
func (m Memory) remember(in Input) Memory {
	next := Memory{started: true, kmsSince: m.activeSince(in), nodes: map[string]expectation{}, orphans: map[string]orphan{}}
	if in.KMSActive {
		for name, created := range in.Nodes {
			next.nodes[name] = m.expect(in, name, created)
		}
	}
	for name, report := range in.Observed.Reports {
		if _, expected := next.nodes[name]; !expected {
			next.orphans[name] = m.orphaned(in, name, report)
		}
	}
	return next
}

// activeSince is when KMS became active. An aggregator that finds its rollups on the CR as it starts did not see
// that instant: the oldest of them stands at least since then, unless the grace is known to be over already.
func (m Memory) activeSince(in Input) time.Time {
	switch {
	case !in.KMSActive:
		return time.Time{}
	case !m.kmsSince.IsZero():
		return m.kmsSince
	case m.started:
		return in.Now
	}
	since := in.Now
	for _, t := range contract.RollupTypes() {
		c, ok := find(in.Observed.Conditions, t)
		switch {
		case ok && c.Reason == contract.ReasonReportMissing:
			return time.Unix(0, 0).UTC()
		case ok && c.LastTransitionTime.Add(second).Before(since):
			since = c.LastTransitionTime.Add(second)
		}
	}
	return since
}

// expect remembers one expected node. A node that is new to a running aggregator is expected from now on; one that
// was there when the aggregator started is expected since it was created.
func (m Memory) expect(in Input, name string, created time.Time) expectation {
	_, reported := in.Observed.Reports[name]
	old, known := m.nodes[name]
	e := expectation{created: created, since: old.since, reported: reported}
	switch {
	case !m.started:
		e.since = earlier(in.Now, created.Add(second))
	case !known, !old.created.Equal(created), old.reported && !reported:
		e.since = in.Now // new, replaced under its name, or its report vanished
	}
	return e
}

// orphaned remembers one orphan. It is to be evicted if its node (or KMS) was seen to go while it stood.
func (m Memory) orphaned(in Input, name string, report Report) orphan {
	_, wasExpected := m.nodes[name]
	old, known := m.orphans[name]
	o := orphan{evict: old.evict || wasExpected, fingerprint: report.Fingerprint, since: in.Now}
	if known && old.fingerprint == report.Fingerprint {
		o.since = old.since
	}
	return o
}

// Removed notes that the reports of nodes were removed from the CR. Whatever appears under these names afterwards
// was written by a reporter that is still there, and is removed only when it is stale.
func (m Memory) Removed(nodes ...string) Memory {
	m.orphans = maps.Clone(m.orphans)
	for _, n := range nodes {
		delete(m.orphans, n)
	}
	return m
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
