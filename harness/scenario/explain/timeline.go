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
func Timeline(s *scenario.Scenario, t contract.Timing) ([]Row, error) {
	l := &timeline{timing: t}
	end, err := l.sequence(s.Steps, "steps", Span{}, 0, 1)
	if err != nil {
		return nil, fmt.Errorf("timeline of %s: %w", s.Name, err)
	}
	l.extents(end.Latest)
	return l.rows, nil
}

type timeline struct {
	timing  contract.Timing
	rows    []Row
	actions []scenario.Action // of each row; nil if it is none
}

// sequence adds steps that follow each other, and says when the last has ended.
func (l *timeline) sequence(steps []scenario.Step, path string, begin Span, depth, times int) (Span, error) {
	now := begin
	for i, s := range steps {
		from, err := l.begin(s, begin, now)
		if err != nil {
			return now, err
		}
		if now, err = l.step(s, fmt.Sprintf("%s[%d]", path, i), from, depth, times); err != nil {
			return now, err
		}
	}
	return now, nil
}

// begin is when a step can begin that follows others: at counts from the beginning of the group.
func (l *timeline) begin(s scenario.Step, group, now Span) (Span, error) {
	at, err := s.At.Resolve(l.timing)
	if err != nil {
		return now, err
	}
	after, err := s.After.Resolve(l.timing)
	if err != nil {
		return now, err
	}
	now = Span{now.Earliest + after, now.Latest + after}
	if !s.At.IsZero() {
		now = Span{max(now.Earliest, group.Earliest+at), max(now.Latest, group.Latest+at)}
	}
	return now, nil
}

func (l *timeline) step(s scenario.Step, path string, from Span, depth, times int) (Span, error) {
	row := Row{Step: path, Depth: depth, Begin: from, End: from, Text: text(s), Times: times}
	switch {
	case s.Action != nil:
		row.Kind = Action
		return l.add(row, s.Action).End, nil
	case s.Expect != nil:
		return l.expectation(row, s.Expect)
	case s.Parallel != nil:
		return l.parallel(row, s.Parallel)
	case s.Repeat != nil:
		return l.repeat(row, s.Repeat)
	}
	row.Kind = Wait
	d, err := s.Wait.Resolve(l.timing)
	row.End = Span{from.Earliest + d, from.Latest + d}
	return l.add(row, nil).End, err
}

func (l *timeline) expectation(row Row, e *scenario.Expectation) (Span, error) {
	d, err := e.Bound.Resolve(l.timing)
	row.Kind, row.End = Holds, Span{row.Begin.Earliest + d, row.Begin.Latest + d}
	if e.Mode == scenario.ModeWithin {
		row.Kind, row.End.Earliest = Expect, row.Begin.Earliest
	}
	return l.add(row, nil).End, err
}

// parallel ends with the last of its steps.
func (l *timeline) parallel(row Row, steps []scenario.Step) (Span, error) {
	at := l.group(row)
	end := row.Begin
	for i, s := range steps {
		from, err := l.begin(s, row.Begin, row.Begin)
		if err != nil {
			return end, err
		}
		one, err := l.step(s, fmt.Sprintf("%s.parallel[%d]", row.Step, i), from, row.Depth+1, row.Times)
		if err != nil {
			return end, err
		}
		end = Span{max(end.Earliest, one.Earliest), max(end.Latest, one.Latest)}
	}
	l.rows[at].End = end
	return end, nil
}

// repeat shows its steps once: the first round, and how many follow.
func (l *timeline) repeat(row Row, r *scenario.Repeat) (Span, error) {
	at := l.group(row)
	end, err := l.sequence(r.Steps, row.Step+".repeat.steps", row.Begin, row.Depth+1, row.Times*r.Times)
	n, least := time.Duration(r.Times), time.Duration(r.Times)
	if r.Until != "" {
		least = 1
	}
	all := Span{row.Begin.Earliest + least*(end.Earliest-row.Begin.Earliest), row.Begin.Latest + n*(end.Latest-row.Begin.Latest)}
	l.rows[at].End = all
	return all, err
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
