package local

import (
	"context"
	"fmt"
	"sync"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// unit is a place for one process at a time, whatever it is.
type unit interface {
	// start starts it unless it runs, and returns when it answers.
	start(ctx context.Context) error
	Stop(ctx context.Context) error
	Kill() error
	Pause(ctx context.Context) error
	Resume() error
	// Process is the current or last one; nil before the first start.
	Process() *process.Process
}

// running says whether there is a process, paused or not.
func running(u unit) bool {
	p := u.Process()
	return p != nil && p.State() != process.Exited
}

// child is a process that this package starts itself.
type child struct {
	identity   history.Process
	supervisor *process.Supervisor
	// spec is asked at every start: sockets and files may have changed.
	spec func(context.Context) (process.Spec, error)
	// ready is nil for a process that is ready as soon as it runs.
	ready process.Probe

	mu      sync.Mutex
	current *process.Process
}

func (c *child) start(ctx context.Context) error {
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
	spec.Name = nameOf(c.identity)
	p, err := c.supervisor.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	c.current = p
	return p, nil
}

func (c *child) Process() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

func (c *child) Stop(ctx context.Context) error {
	if p := c.Process(); p != nil {
		return p.Stop(ctx)
	}
	return nil
}

func (c *child) Kill() error {
	if p := c.Process(); p != nil {
		return p.Kill()
	}
	return nil
}

func (c *child) Pause(ctx context.Context) error {
	p := c.Process()
	if p == nil {
		return fmt.Errorf("pause %s: it was never started", nameOf(c.identity))
	}
	return p.Pause(ctx)
}

func (c *child) Resume() error {
	p := c.Process()
	if p == nil {
		return fmt.Errorf("resume %s: it was never started", nameOf(c.identity))
	}
	return p.Resume()
}

// nameOf is the name of a process for its log file and its changes: "plugin-cp-1-1", "aggregator-2".
func nameOf(p history.Process) string {
	name := p.Role
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

// apiServer is a unit whose start waits for what can be had: /livez always comes, /readyz needs every plugin.
type apiServer struct{ *controlplane.APIServer }

func (s apiServer) start(ctx context.Context) error {
	if err := s.Start(ctx, controlplane.Live); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, readyGrace)
	defer cancel()
	_ = s.WaitReady(ready, controlplane.Ready) // with a dead plugin it never is
	return ctx.Err()
}

type etcd struct{ *controlplane.Etcd }

func (e etcd) start(ctx context.Context) error { return e.Start(ctx) }
