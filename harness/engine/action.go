package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// action is one thing done to the environment. It runs concurrently with the engine and is over when its end has been
// read from the history: so have, then, all its effects that the environment recorded before it. Without that an
// expectation right after an action could still see the state before it.
type action struct {
	run    *run
	id     string
	action scenario.Action
	heal   bool // healing must undo it; false for healing itself
	began  bool
}

func (a *action) advance(time.Time) bool {
	if !a.began {
		a.begin()
		return false
	}
	result, over := a.run.results[a.id]
	if over && result.State == history.ActionFailed {
		a.run.failed = true
		a.run.progress("%s %s FAILED: %s", a.id, scenario.VerbOf(a.action), result.Error)
	}
	return over
}

func (a *action) due() time.Time { return time.Time{} }

func (a *action) begin() {
	a.began = true
	resolved, err := a.run.resolveAction(a.action)
	nodes := a.run.env.Nodes()
	target, params := scenario.Target(resolved, nodes), scenario.Params(resolved)
	if a.heal {
		a.run.done = append(a.run.done, resolved)
	}
	a.run.progress("%s %s", a.id, scenario.Line(resolved, nodes))
	event := history.Action{ID: a.id, Verb: string(scenario.VerbOf(a.action)), Target: target, Params: params, State: history.ActionBegan}
	a.run.record(a.run.opts.Runtime.Now(), history.Of{APIServer: scenario.OfAPIServer(resolved), Payload: &event})
	a.run.concurrent(func(ctx context.Context) { a.carryOut(ctx, event, resolved, err) })
}

// carryOut runs beside the engine: it touches nothing of the run but the history. A failed action fails the run: what
// the steps after it expect would be judged under wrong assumptions.
func (a *action) carryOut(ctx context.Context, event history.Action, resolved scenario.Action, err error) {
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, a.run.opts.Limits.Action)
		err = a.run.env.Do(ctx, resolved)
		cancel()
	}
	event.State = history.ActionDone
	if err != nil {
		event.State, event.Error = history.ActionFailed, fmt.Sprintf("%s %s: %v", event.Verb, event.Target, err)
	}
	a.run.record(a.run.opts.Runtime.Now(), history.Of{APIServer: scenario.OfAPIServer(resolved), Payload: &event})
}
