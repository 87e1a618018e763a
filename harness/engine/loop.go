package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// task is something that goes on while time passes and events arrive: a step, a list of steps, a control. Tasks are
// state machines and no goroutines, because virtual time and real time then run the same code, and one goroutine decides
// everything in the order of events.
type task interface {
	// advance goes on as far as it can at now and reports whether it is over. It must not block.
	advance(now time.Time) (over bool)
	// due is when it must be advanced although nothing happened; zero for never.
	due() time.Time
}

// drive runs a task to its end. Each event is folded at its own instant, and the task advanced just before and after it:
// what an expectation sees does not depend on how late the engine got to run. An engine that is starved for a second
// then judges the same as one that is not.
func (r *run) drive(ctx context.Context, t task) error {
	r.now = r.opts.Runtime.Now() // a task begins now, whatever is still in the queue
	r.stirred = true
	for {
		if r.catchUp(t) || r.advance(t, r.opts.Runtime.Now()) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
		r.opts.Runtime.Wait(ctx, r.due)
	}
}

// catchUp folds what has arrived. It reports whether the task is over, and then leaves the rest for the next one. An
// event from the future (a recorder's clock may be ahead) counts as of now.
func (r *run) catchUp(t task) (over bool) {
	for {
		e, ok := r.queue.pop()
		if !ok {
			return false
		}
		at := earlier(e.At, r.opts.Runtime.Now())
		over = r.advance(t, at.Add(-1)) // a nanosecond before: what happens at a deadline still counts
		r.fold(e)
		if over || r.advance(t, at) {
			return true
		}
	}
}

// advance never lets time go back: recorders that tail a file deliver events a little late, with an earlier instant. A
// task that has gone on as far as it could is left alone until it is due, or something has changed. There are many more
// events than that, and evaluating CEL for each of them would dominate a run.
func (r *run) advance(t task, now time.Time) bool {
	if now.After(r.now) {
		r.now = now
	}
	if !r.stirred && (r.due.IsZero() || r.now.Before(r.due)) {
		return false
	}
	failed := r.failed
	over := t.advance(r.now)
	r.stirred, r.due = r.failed != failed, t.due() // who was advanced before it failed has yet to learn of it
	return over
}

func (r *run) fold(e history.Event) {
	if r.state.Apply(e) {
		r.version++
		r.stirred = r.stirred || r.looking > 0
	}
	if e.Action != nil && e.Source == source && e.Action.State != history.ActionBegan {
		r.results[e.Action.ID] = *e.Action
		r.stirred = true
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// soonest of two instants, of which zero is never.
func soonest(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	default:
		return earlier(a, b)
	}
}
