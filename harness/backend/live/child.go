package live

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// readyPoll is how often a starting process is asked whether it answers.
const readyPoll = 10 * time.Millisecond

// child is a Unit that is a process of this machine.
type child struct {
	*process.Unit
	// spec is asked at every start: sockets and files may have changed.
	spec func(context.Context) (process.Spec, error)
	// ready is nil for a process that is ready as soon as it runs.
	ready process.Probe
}

func (c *child) Start(ctx context.Context) error {
	p, err := c.Launch(ctx, c.spec)
	if err != nil || c.ready == nil {
		return err
	}
	return p.WaitReady(ctx, readyPoll, c.ready)
}

func (c *child) Status() Status { return StatusOf(c.Process()) }

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
