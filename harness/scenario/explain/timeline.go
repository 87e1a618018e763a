package explain

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Row is one step of a timeline. Its times count from the beginning of the steps. An action takes no time here: how long a process
// needs to start is not known before.
type Row struct {
	// Step is its path, as in verdicts: "steps[1]".
	Step  string
	Depth int // in groups
	Kind  Kind
	Text  string
	// Begin and End are the earliest and the latest instants of both.
	Begin, End Span
	// Lasts is until when what the step did is in force, at the latest; zero if that is no matter.
	Lasts time.Duration
	// Times is how often the step is done: more than 1 within repetitions.
	Times int
}

type Span struct{ Earliest, Latest time.Duration }

// Kind of a row.
type Kind string

// Kinds of rows.
const (
	Action Kind = "action"
	Expect Kind = "expect" // becomes true at some time
	Holds  Kind = "holds"  // true, or false, all the time
	Wait   Kind = "wait"
	Group  Kind = "group"
)

// Timeline is the rows of a scenario's steps, in the order of the file. The scenario must be valid.
func Timeline(s *scenario.Scenario, t contract.Timing) []Row {
	l := &timeline{timing: t, nodes: s.Topology.Nodes()}
	end := l.sequence(s.Steps, "steps", Span{}, 0, 1)
	l.extents(end.Latest)
	return l.rows
}

type timeline struct {
	timing  contract.Timing
	nodes   []string
	rows    []Row
	actions []scenario.Action // of each row; nil if it is none
}

func (l *timeline) resolve(d scenario.Duration) time.Duration { return d.In(l.timing) }

func (s Span) plus(d time.Duration) Span { return Span{s.Earliest + d, s.Latest + d} }

// sequence adds steps that follow each other, and says when the last has ended.
func (l *timeline) sequence(steps []scenario.Step, path string, begin Span, depth, times int) Span {
	now := begin
	for i, s := range steps {
		now = l.step(s, fmt.Sprintf("%s[%d]", path, i), l.begin(s, begin, now), depth, times)
	}
	return now
}

// begin is when a step can begin that follows others: at counts from the beginning of the group.
func (l *timeline) begin(s scenario.Step, group, now Span) Span {
	now = now.plus(l.resolve(s.After))
	if !s.At.IsZero() {
		at := group.plus(l.resolve(s.At))
		now = Span{max(now.Earliest, at.Earliest), max(now.Latest, at.Latest)}
	}
	return now
}

func (l *timeline) step(s scenario.Step, path string, from Span, depth, times int) Span {
	row := Row{Step: path, Depth: depth, Begin: from, End: from, Text: l.text(s), Times: times}
	switch {
	case s.Action != nil:
		row.Kind = Action
		return l.add(row, s.Action).End
	case s.Expect != nil:
		row.Kind, row.End = Holds, from.plus(l.resolve(s.Expect.Bound))
		if s.Expect.Mode == scenario.ModeWithin {
			row.Kind, row.End.Earliest = Expect, from.Earliest
		}
		return l.add(row, nil).End
	case s.Parallel != nil:
		return l.parallel(row, s.Parallel)
	case s.Repeat != nil:
		return l.repeat(row, s.Repeat)
	}
	row.Kind, row.End = Wait, from.plus(l.resolve(s.Wait))
	return l.add(row, nil).End
}

// parallel ends with the last of its steps.
func (l *timeline) parallel(row Row, steps []scenario.Step) Span {
	at := l.group(row)
	end := row.Begin
	for i, s := range steps {
		one := l.step(s, fmt.Sprintf("%s.parallel[%d]", row.Step, i), l.begin(s, row.Begin, row.Begin), row.Depth+1, row.Times)
		end = Span{max(end.Earliest, one.Earliest), max(end.Latest, one.Latest)}
	}
	l.rows[at].End = end
	return end
}

// repeat shows its steps once: the first round, and how many follow.
func (l *timeline) repeat(row Row, r *scenario.Repeat) Span {
	at := l.group(row)
	end := l.sequence(r.Steps, row.Step+".repeat.steps", row.Begin, row.Depth+1, row.Times*r.Times)
	n, least := time.Duration(r.Times), time.Duration(r.Times)
	if r.Until != "" {
		least = 1
	}
	all := Span{row.Begin.Earliest + least*(end.Earliest-row.Begin.Earliest), row.Begin.Latest + n*(end.Latest-row.Begin.Latest)}
	l.rows[at].End = all
	return all
}

func (l *timeline) group(row Row) int {
	row.Kind = Group
	l.add(row, nil)
	return len(l.rows) - 1
}

func (l *timeline) add(row Row, a scenario.Action) Row {
	l.rows, l.actions = append(l.rows, row), append(l.actions, a)
	return row
}

// extents computes until when the effect of each action lasts: until a step ends it, its own time is over, or the steps are.
func (l *timeline) extents(end time.Duration) {
	for i, a := range l.actions {
		if a == nil || !scenario.Lasts(a) {
			continue
		}
		l.rows[i].Lasts = end
		if b, ok := a.(interface{ Bound() scenario.Duration }); ok {
			if d := l.resolve(b.Bound()); d > 0 {
				l.rows[i].Lasts = min(end, l.rows[i].Begin.Latest+d)
			}
		}
		for j := i + 1; j < len(l.actions); j++ {
			if b := l.actions[j]; b != nil && scenario.Ends(b, a) {
				l.rows[i].Lasts = min(l.rows[i].Lasts, l.rows[j].Begin.Latest)
				break
			}
		}
	}
}

func (l *timeline) text(s scenario.Step) string {
	switch {
	case s.Action != nil:
		return scenario.Line(s.Action, l.nodes)
	case s.Expect != nil:
		return expecting(*s.Expect)
	case s.Parallel != nil:
		return "at the same time:"
	case s.Repeat != nil:
		if s.Repeat.Until != "" {
			return fmt.Sprintf("up to %d times, until %s:", s.Repeat.Times, s.Repeat.Until)
		}
		return fmt.Sprintf("%d times:", s.Repeat.Times)
	}
	return "let " + s.Wait.Text + " pass"
}

func expecting(e scenario.Expectation) string {
	switch e.Mode {
	case scenario.ModeHolds:
		return "for " + e.Bound.Text + " always: " + e.CEL
	case scenario.ModeNever:
		return "for " + e.Bound.Text + " never: " + e.CEL
	}
	return "within " + e.Bound.Text + ": " + e.CEL
}
