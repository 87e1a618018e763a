package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/text"
)

// step is an action from when it began to when it was undone, or over if there is nothing to undo.
type step struct {
	history.Action
	from, to time.Time
	event    int
	lasts    bool // in force until it is undone
	failed   bool
}

// addBands makes a band of every action. What breaks something shades the lanes that it strikes until it is undone.
func (b *builder) addBands() {
	var lines lines
	nodes := b.lanes.nodes()
	for _, s := range b.steps() {
		from, to := b.ms(s.from), b.ms(s.to)
		p := b.lanes.needLine(rowSteps, lines.take(from, to))
		band := Band{Span: Span{at: p, From: from, To: max(to, from), Class: Note, Text: safe(actionText(s.Action)), Event: s.event}}
		if s.lasts {
			band.Class, band.Fault, band.strikes = Warn, true, b.struck(s, nodes)
		}
		if s.failed {
			band.Class = Bad
		}
		b.out.Bands = append(b.out.Bands, band)
	}
}

// lines are when each line of a row is free again.
type lines []float64

// take puts something on the first line that is free.
func (l *lines) take(from, until float64) (line int) {
	line = slices.IndexFunc(*l, func(free float64) bool { return free <= from })
	if line < 0 {
		line, *l = len(*l), append(*l, 0)
	}
	(*l)[line] = until
	return line
}

// steps pairs the events of each action, and each action with what undoes it.
func (b *builder) steps() []step {
	var all []step
	began := map[string]int{}
	for i, e := range b.events {
		switch {
		case e.Action == nil:
		case e.Action.State == history.ActionBegan:
			began[e.Action.ID] = len(all)
			all = append(all, step{Action: *e.Action, from: e.At, to: b.ended, event: i, lasts: lasts(*e.Action)})
		default:
			n, ok := began[e.Action.ID]
			if !ok {
				continue
			}
			delete(began, e.Action.ID)
			all[n].failed = e.Action.State == history.ActionFailed
			if !all[n].lasts {
				all[n].to = e.At
			}
			for j := range all[:n] {
				if all[j].lasts && all[j].to.Equal(b.ended) && undoes(*e.Action, all[j].Action) {
					all[j].to = e.At
				}
			}
		}
	}
	return all
}

// lasts: these verbs leave something broken.
func lasts(a history.Action) bool {
	switch a.Verb {
	case "inject", "stop", "kill", "pause", "silence":
		return true
	case "link":
		return a.Param("mode") != "restore"
	case "kms":
		return slices.Contains([]string{"disable", "deny", "cut", "delete", "expire", "revoke", "throttle"}, a.Param("op"))
	case "encryption":
		return a.Param("type") == "identity"
	}
	return false
}

// undoes says whether an action ends what an earlier one left broken.
func undoes(a, earlier history.Action) bool {
	switch earlier.Verb {
	case "inject":
		fault := a.Param("fault")
		return a.Verb == "release" && covers(a.Target, earlier.Target) && (fault == "" || fault == earlier.Param("fault"))
	case "stop", "kill":
		return (a.Verb == "start" || a.Verb == "restart") && covers(a.Target, earlier.Target)
	case "pause", "silence":
		return slices.Contains([]string{"resume", "restart", "start", "kill"}, a.Verb) && covers(a.Target, earlier.Target)
	case "link":
		return a.Verb == "link" && covers(a.Target, earlier.Target)
	case "kms":
		return a.Verb == "kms" && slices.Contains([]string{"enable", "allow", "restore", "renew"}, a.Param("op"))
	}
	return a.Verb == earlier.Verb
}

// covers: "plugin all" covers every plugin, "plugin cp-2/*" those of cp-2, "process reporter" every reporter.
func covers(wide, narrow string) bool {
	wide = strings.TrimSuffix(strings.TrimSuffix(wide, "/*"), " all")
	rest, ok := strings.CutPrefix(narrow, wide)
	return ok && (rest == "" || strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, " "))
}

// actionText is an action on one line, its parameters by name.
func actionText(a history.Action) string {
	words := []string{a.Verb}
	if a.Target != "" {
		words = append(words, a.Target)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Params)) {
		words = append(words, fmt.Sprintf("%s=%v", name, a.Params[name]))
	}
	return strings.Join(words, " ")
}

// named are the nodes that an action names; none means all.
func named(a history.Action, nodes []string) (out []string) {
	words := strings.FieldsFunc(actionText(a), func(r rune) bool { return strings.ContainsRune(" ,;/=[]", r) })
	for _, node := range nodes {
		if slices.Contains(words, node) {
			out = append(out, node)
		}
	}
	return out
}

// struck are the lanes that an action strikes; none means all. What happens to a node happens to all API servers on it, what happens
// to a plugin, a reporter or an aggregator only to the one whose it is.
func (b *builder) struck(s step, nodes []string) (out []place) {
	own := slices.ContainsFunc([]string{"plugin", "process plugin", "process reporter", "process aggregator"}, func(prefix string) bool {
		return strings.HasPrefix(s.Target, prefix)
	})
	of := named(s.Action, nodes)
	if len(of) == 0 && own && len(b.shares) > 1 {
		of = nodes
	}
	for _, node := range of {
		for _, x := range b.shares {
			if !own || x.name == b.events[s.event].APIServer {
				out = append(out, place{node: node, api: x.name, row: rowNode})
			}
		}
	}
	return out
}

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
