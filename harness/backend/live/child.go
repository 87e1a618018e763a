package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// readyPoll is how often a starting process is asked whether it answers.
const readyPoll = 10 * time.Millisecond

// child is a Unit that is a process of this machine.
type child struct {
	name       string
	supervisor *process.Supervisor
	// spec is asked at every start: sockets and files may have changed.
	spec func(context.Context) (process.Spec, error)
	// ready is nil for a process that is ready as soon as it runs.
	ready process.Probe

	mu      sync.Mutex
	current *process.Process
}

func (c *child) Start(ctx context.Context) error {
	p, err := c.run(ctx)
	if err != nil || c.ready == nil {
		return err
	}
	return p.WaitReady(ctx, readyPoll, c.ready)
}

func (c *child) run(ctx context.Context) (*process.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.current.State() != process.Exited {
		return c.current, nil
	}
	spec, err := c.spec(ctx)
	if err != nil {
		return nil, err
	}
	spec.Name = c.name
	p, err := c.supervisor.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	c.current = p
	return p, nil
}

func (c *child) process() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

func (c *child) Status() Status { return StatusOf(c.process()) }

// StatusOf is the status of a unit whose current or last process is p; nil before the first start.
func StatusOf(p *process.Process) Status {
	if p == nil {
		return Status{}
	}
	s := Status{Phase: Running, PID: p.PID()}
	switch p.State() {
	case process.Paused:
		s.Phase = Paused
	case process.Exited:
		exit, _ := p.Exit()
		s.Phase, s.Crashed = Ended, exit.Cause == process.CauseCrash
	}
	return s
}

func (c *child) Stop(ctx context.Context) error {
	if p := c.process(); p != nil {
		return p.Stop(ctx)
	}
	return nil
}

func (c *child) Kill(context.Context) error {
	if p := c.process(); p != nil {
		return p.Kill()
	}
	return nil
}

func (c *child) Pause(ctx context.Context) error {
	p := c.process()
	if p == nil {
		return fmt.Errorf("pause %s: it was never started", c.name)
	}
	return p.Pause(ctx)
}

func (c *child) Resume(context.Context) error {
	p := c.process()
	if p == nil {
		return fmt.Errorf("resume %s: it was never started", c.name)
	}
	return p.Resume()
}

// NameOf is the name of a process for its log file and its changes: "plugin-cp-1-1", "aggregator-2".
func NameOf(p history.Process) string {
	name := p.Role
	if p.APIServer != "" {
		name = p.APIServer + "-" + p.Role
	}
	if p.Node != "" {
		name += "-" + p.Node
	}
	if p.KeyID != "" {
		name += "-" + p.KeyID
	}
	if p.Instance != 0 {
		name += fmt.Sprintf("-%d", p.Instance)
	}
	return name
}
