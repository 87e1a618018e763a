package engine

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Steps of a group do not see each other's end, except that a failure stops those that have not begun.
func (r *run) parallel(steps []scenario.Step, id, mark string, now time.Time) task {
	group := &all{over: make([]bool, len(steps))}
	for i := range steps {
		// A list that ends with one step each: at and after of each count from the beginning of the group.
		group.tasks = append(group.tasks, &sequence{run: r, steps: steps[:i+1], next: i, id: id, mark: mark, free: now})
	}
	return group
}

// repetition runs steps several times, with "until" as long as its expression is false. Each round has its number in the
// ids (#2), so that events of the history are unique.
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
		if p.settled(now) {
			return true
		}
	}
}

// settled says whether a repetition with an end of its own is over. One that never got there has failed.
func (p *repetition) settled(now time.Time) bool {
	if p.repeat.Until == "" || p.run.failed {
		return false
	}
	x := p.run.expect(scenario.Expectation{Mode: scenario.ModeWithin, CEL: p.repeat.Until}, p.id+".until"+p.mark)
	x.began = now
	switch {
	case x.broken != "":
		x.end(now, false, x.broken)
	case x.program.Eval(p.run.state, now):
		x.end(now, true, "")
	case p.times == p.repeat.Times:
		x.end(now, false, fmt.Sprintf("after %d rounds: %s", p.times, x.program.Explain(p.run.state, now)))
	default:
		return false
	}
	return true
}

func (p *repetition) due() time.Time {
	if p.current == nil {
		return time.Time{}
	}
	return p.current.due()
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
