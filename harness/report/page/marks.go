package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/text"
)

// maxShown bounds a text of a mark.
const maxShown = 2000

func safe(s string) string { return contract.SafeText(s, maxShown) }

// addWindows makes a window of every expectation: the time that was allowed, and when it was decided. One that was not met is marked, too.
func (b *builder) addWindows() {
	var lines lines
	for i, e := range b.events {
		x := e.Expectation
		if x == nil {
			continue
		}
		began, allowed := e.At.Add(-x.Took), x.Mode+" "+text.Short(x.Bound)+": "+x.Text
		from, due, took := b.ms(began), b.ms(began.Add(x.Bound)), b.ms(e.At)
		p := b.lanes.needLine(rowExpected, lines.take(from, max(due, took)))
		b.out.Windows = append(b.out.Windows, Window{Span{at: p, From: from, To: due, Class: okOr(x.OK, Bad), Text: safe(x.ID + " " + allowed), Event: i}, took})
		if !x.OK {
			b.out.Marks = append(b.out.Marks, Mark{At: took, From: from, To: due, Window: true, Target: -1, at: p, Event: i, ID: x.ID, Seen: safe(x.Detail), Allowed: safe(allowed)})
		}
	}
}

// maxMarkLines bounds the lines of marks; those that find no room share the last one.
const maxMarkLines = 6

// addMarks marks what else was not as it should be, and puts all marks into the order of time. Each has a line on which its window and its name, which
// takes a part of the width, hide no other.
func (b *builder) addMarks(v check.Verdict) {
	for i, e := range b.events {
		if e.Action != nil && e.Action.State == history.ActionFailed {
			b.out.Marks = append(b.out.Marks, Mark{At: b.ms(e.At), Target: -1, at: b.out.Events[i].at, Event: i, ID: e.Action.ID, Seen: safe(e.Action.Error), Allowed: "the action takes effect"})
		}
	}
	for _, r := range v.Invariants {
		for _, x := range r.Violations {
			b.out.Marks = append(b.out.Marks, b.markOf(r, x))
		}
	}
	slices.SortStableFunc(b.out.Marks, func(x, y Mark) int { return cmp.Compare(x.At, y.At) })
	b.lanes.need(place{row: rowViolated})
	var lines lines
	for i := range b.out.Marks {
		m := &b.out.Marks[i]
		from := m.At
		if m.Window {
			from = min(from, m.From)
		}
		m.line = min(lines.take(from, max(m.At, m.To)+b.out.Span*0.12), maxMarkLines-1)
		b.lanes.needLine(rowViolated, m.line)
	}
}

func (b *builder) markOf(r check.Result, x check.Violation) Mark {
	m := Mark{At: b.ms(x.At), Target: -1, Event: -1, ID: check.Code(r.ID, x.Rule), Where: strings.TrimSuffix(x.Node+"/"+x.KeyID, "/"), Seen: safe(x.Seen), Allowed: safe(x.Allowed)}
	if r.Status == check.Excused {
		m.Excused = safe(r.Excuse)
	}
	if !x.To.IsZero() {
		m.Window, m.From, m.To = true, b.ms(x.From), b.ms(x.To)
	}
	if i, ok := b.index[x.Seq]; ok && x.Seq != 0 {
		m.Event, m.at = i, b.out.Events[i].at
	}
	if p, ok := b.targetOf(r.ID, x); ok {
		m.at = p
	}
	return m
}

// targetOf is where a violation shows, if its event stands elsewhere or there is none.
func (b *builder) targetOf(id string, x check.Violation) (p place, ok bool) {
	switch id {
	case "DETECTION", "RECOVERY", "FALSE-HEALTHY", "FALSE-ALARM", "STALE-UNKNOWN", "ABSENCE-IS-NOT-BROKEN":
		p = place{row: rowDegraded}
	case "CADENCE":
		p = place{node: x.Node, row: rowWrites}
	case "MONOTONIC", "TRUTHFUL-PROBE":
		p = place{node: x.Node, row: rowReport, of: x.KeyID}
	}
	if p != (place{}) {
		p.api = x.APIServer
	}
	_, ok = b.lanes.rows[p]
	return p, ok && p != place{}
}
