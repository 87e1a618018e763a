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
		return &action{run: r, id: id + mark, action: s.Action, heal: true}
	case s.Expect != nil:
		return r.expect(*s.Expect, fmt.Sprintf("%s.%s%s", id, s.Expect.Mode.Keyword(), mark))
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

func (r *run) resolve(d scenario.Duration) time.Duration { return d.In(r.metadata.Timing) }
