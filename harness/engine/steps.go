package engine

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// sequence is steps one after another. After a failure no further step begins.
type sequence struct {
	run      *run
	steps    []scenario.Step
	id, mark string // id of the list; mark of a repetition
	next     int
	current  task
	free     time.Time // when the previous step was over
}

func (s *sequence) advance(now time.Time) bool {
	for {
		if s.current == nil {
			if s.next == len(s.steps) || s.run.failed {
				return true
			}
			if now.Before(s.start()) {
				return false
			}
			s.current = s.run.task(s.steps[s.next], fmt.Sprintf("%s[%d]", s.id, s.next), s.mark, now)
		}
		if !s.current.advance(now) {
			return false
		}
		s.current, s.free = nil, now
		s.next++
	}
}

// start of the next step: not before its own instant, and its delay after the previous one.
func (s *sequence) start() time.Time {
	step := s.steps[s.next]
	at, after := s.run.began.Add(s.run.resolve(step.At)), s.free.Add(s.run.resolve(step.After))
	if step.At.IsZero() || after.After(at) {
		return after
	}
	return at
}

func (s *sequence) due() time.Time {
	switch {
	case s.current != nil:
		return s.current.due()
	case s.next < len(s.steps):
		return s.start()
	default:
		return time.Time{}
	}
}

// all is several tasks at once, over when the last is over.
type all struct {
	tasks []task
	over  []bool
}

func (a *all) advance(now time.Time) bool {
	over := true
	for i, t := range a.tasks {
		a.over[i] = a.over[i] || t.advance(now)
		over = over && a.over[i]
	}
	return over
}

func (a *all) due() time.Time {
	var due time.Time
	for i, t := range a.tasks {
		if !a.over[i] {
			due = soonest(due, t.due())
		}
	}
	return due
}

// wait lets time pass, unless the run has failed meanwhile.
type wait struct {
	run   *run
	until time.Time
}

func (w *wait) advance(now time.Time) bool { return w.run.failed || !now.Before(w.until) }

func (w *wait) due() time.Time { return w.until }

// task makes what runs a step. The step is valid; Execute and the parser see to that.
func (r *run) task(s scenario.Step, id, mark string, now time.Time) task {
	switch {
	case s.Action != nil:
		return &action{run: r, id: id + mark, action: *s.Action, heal: true}
	case s.Expect != nil:
		return r.expect(*s.Expect, fmt.Sprintf("%s.%s%s", id, s.Expect.Mode.Word(), mark))
	case s.Parallel != nil:
		return r.parallel(s.Parallel, id+".parallel", mark, now)
	case s.Repeat != nil:
		return &repetition{run: r, repeat: *s.Repeat, id: id + ".repeat", mark: mark}
	default:
		d := r.resolve(s.Wait)
		r.progress("%s wait %v", id+mark, d)
		return &wait{r, now.Add(d)}
	}
}

func (r *run) parallel(steps []scenario.Step, id, mark string, now time.Time) task {
	group := &all{over: make([]bool, len(steps))}
	for i := range steps {
		// A list of one step each: at and after of each count from the beginning of the group.
		group.tasks = append(group.tasks, &single{sequence{run: r, steps: steps[i : i+1], id: id, mark: mark, free: now}, i})
	}
	return group
}

// single is one step of a parallel group under its own number.
type single struct {
	sequence
	index int
}

func (s *single) advance(now time.Time) bool {
	if s.current == nil && s.next == 0 && !s.run.failed && !now.Before(s.start()) {
		s.current = s.run.task(s.steps[0], fmt.Sprintf("%s[%d]", s.id, s.index), s.mark, now)
	}
	return s.sequence.advance(now)
}

// repetition is steps several times.
type repetition struct {
	run      *run
	repeat   scenario.Repeat
	id, mark string
	times    int
	current  *sequence
}

func (p *repetition) advance(now time.Time) bool {
	for {
		if p.current == nil {
			if p.times == p.repeat.Times || p.run.failed {
				return true
			}
			p.times++
			p.current = &sequence{run: p.run, steps: p.repeat.Steps, id: p.id, mark: fmt.Sprintf("%s#%d", p.mark, p.times), free: now}
		}
		if !p.current.advance(now) {
			return false
		}
		p.current = nil
	}
}

func (p *repetition) due() time.Time {
	if p.current == nil {
		return time.Time{}
	}
	return p.current.due()
}

// resolve a duration of a valid scenario.
func (r *run) resolve(d scenario.Duration) time.Duration {
	v, err := d.Resolve(r.heading.Timing)
	if err != nil {
		return 0 // checked before the run
	}
	return v
}
