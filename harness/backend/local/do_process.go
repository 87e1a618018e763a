package local

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// target is a process place with its identity.
type target struct {
	unit
	identity history.Process
}

// processes carries out start … restart on every selected process at the same time.
func (e *Environment) processes(ctx context.Context, a scenario.Action) error {
	if a.Process.Role == history.RoleLoadBalancer {
		return e.loadBalancer(a.Verb)
	}
	targets, err := e.selectProcesses(ctx, a.Process)
	if err != nil {
		return err
	}
	if a.Process.Role == history.RoleEtcd {
		e.plane.spoil("%s of etcd", a.Verb)
	}
	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() {
			if err := e.act(ctx, a, t); err != nil {
				errs[i] = fmt.Errorf("%s: %w", nameOf(t.identity), err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (e *Environment) act(ctx context.Context, a scenario.Action, t target) error {
	switch a.Verb {
	case scenario.VerbStart:
		return e.start(ctx, t.unit, t.identity)
	case scenario.VerbStop:
		return t.Stop(ctx)
	case scenario.VerbKill:
		return t.Kill()
	case scenario.VerbPause:
		return t.Pause(ctx)
	case scenario.VerbResume:
		return t.Resume()
	}
	end := t.Stop
	if a.Text("with") == "kill" {
		end = func(context.Context) error { return t.Kill() }
	}
	if err := end(ctx); err != nil {
		return err
	}
	return e.start(ctx, t.unit, t.identity)
}

// start starts a process unless it runs, waits until it answers, and records that it does.
func (e *Environment) start(ctx context.Context, u unit, identity history.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	already := running(u)
	if err := u.start(ctx); err != nil {
		return err
	}
	p := u.Process()
	if already || p == nil || p.State() == process.Exited {
		return nil
	}
	identity.PID, identity.State = p.PID(), history.ProcessReady
	e.record(&identity)
	return nil
}
