package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Bounds of what the environment does, as on real backends.
const (
	startTimeout  = 3 * time.Minute
	reloadTimeout = 75 * time.Second
	reloadPoll    = 250 * time.Millisecond
	// requestTimeout is that of the harness's own requests.
	requestTimeout = 5 * time.Second
)

// Do implements backend.Environment. It is called in a task, and suspends it while it waits.
func (e *environment) Do(ctx context.Context, a scenario.Action) error {
	err := e.w.k.Sleep(0) // what is due now was there before: at the very beginning, the whole cluster
	if err == nil {
		err = e.doAimed(ctx, a)
	}
	if err != nil {
		return fmt.Errorf("action %s: %w", a.Verb(), err)
	}
	return nil
}

func (e *environment) handlers() backend.Handlers {
	h := backend.Handlers{
		scenario.VerbInject:     backend.Handle(e.faults.inject),
		scenario.VerbRelease:    backend.Handle(e.faults.release),
		scenario.VerbRotate:     backend.Handle(e.faults.rotate),
		scenario.VerbKMS:        backend.Handle(e.faults.remote),
		scenario.VerbLink:       backend.Handle(e.faults.link),
		scenario.VerbRefuse:     backend.Handle(e.faults.refuse),
		scenario.VerbWatches:    backend.Handle(e.faults.watches),
		scenario.VerbClock:      backend.Handle(e.faults.clock),
		scenario.VerbCredential: backend.Handle(e.faults.credential),
		scenario.VerbNode:       backend.Handle(e.topology.changeNodes),
		scenario.VerbEncryption: backend.Handle(e.switching.changeEncryption),
		scenario.VerbAPIServer:  backend.Handle(e.faults.configureAPIServer),
		scenario.VerbRollback:   backend.Handle(e.pods.rollback),
		scenario.VerbData:       backend.Handle(e.data.data),
		scenario.VerbCondition:  backend.Handle(e.statuses.condition),
		scenario.VerbEntries:    backend.Handle(e.statuses.entries),
		scenario.VerbAttempt:    backend.Handle(e.statuses.attempt),
	}
	for _, v := range scenario.ProcessVerbs() {
		h[v] = backend.Handle(e.procs.processes)
	}
	return h
}

var errLate = errors.New("it took too long")

// within suspends the task until start's done was called, for at most limit.
func (e *environment) within(limit time.Duration, start func(done func(error))) error {
	result := errLate
	over := false
	err := e.w.k.Suspend(func(resume func()) {
		end := func(err error) {
			if !over {
				over, result = true, err
				resume()
			}
		}
		timer := e.w.k.After(limit, func() { end(fmt.Errorf("%w: %v", errLate, limit)) })
		start(func(err error) { timer.Stop(); end(err) })
	})
	return errors.Join(err, result)
}

// each does something to all of them at once, and waits for the last.
func each[T any](e *environment, all []T, limit time.Duration, do func(T, func(error))) error {
	if len(all) == 0 {
		return nil
	}
	left, failed := len(all), error(nil)
	return e.within(limit, func(done func(error)) {
		for _, one := range all {
			do(one, func(err error) {
				failed = errors.Join(failed, err)
				if left--; left == 0 {
					done(failed)
				}
			})
		}
	})
}

// ask makes a request of the harness, straight to a node's kube-apiserver.
func (e *environment) ask(n *node, r request) reply {
	rep := reply{err: errRefused}
	err := e.within(requestTimeout, func(done func(error)) {
		if !n.kube().runs() {
			done(nil)
			return
		}
		n.kube().receive(&r, func() bool { return true }, func(answer reply) { rep = answer; done(nil) })
	})
	if err != nil {
		rep.err = err
	}
	return rep
}

// admin is a node whose API server runs.
func (e *environment) admin() (*node, error) {
	if all := e.serving(); len(all) > 0 {
		return all[0], nil
	}
	return nil, errors.New("no API server runs")
}
