package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	journal "github.com/kmsharness/kmsharness/harness/record/supervisor"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

// unit is a container of a pod, in which the supervisor runs one program after another.
type unit struct {
	unitFiles
	pod    *pod
	client supervisor.Client
	is     atomic.Pointer[history.Process] // the program that its journal is about; nil: none so far
}

// newUnit is the unit of a container, with its socket on this machine. Its journal is read from its beginning.
func (p *controlPlane) newUnit(in *pod, volume, name string) (*unit, error) {
	u := &unit{unitFiles: unitFiles{volume, name}, pod: in}
	path, err := in.socket(u.name(socketFile))
	if err == nil {
		u.client, err = supervisor.NewClient("unix://" + path)
	}
	if err != nil {
		return nil, fmt.Errorf("unit %s of pod %s: %w", name, in.name, err)
	}
	in.units = append(in.units, u)
	return u, p.journals.Add(in.mirror.file(u.name(journalFile)), tail.FromStart, func(line []byte) error {
		change, err := journal.Decode(line)
		if identity := u.is.Load(); err == nil && identity != nil {
			p.listener.record(change.At, change.Of(*identity))
		}
		return err
	})
}

// Kinds of a unit's files.
const (
	socketFile  = ".sock"
	commandFile = ".json"
	journalFile = ".supervisor.jsonl"
	logFile     = ".log"
)

// program is a program in a unit, as live.Unit.
type program struct {
	*unit
	// command is asked at every start.
	command func(context.Context) ([]string, error)
	// ready may be nil.
	ready func(context.Context) error
}

var _ live.Unit = (*program)(nil)

// place makes the unit a place for programs of the system under test.
func (u *unit) place(identity history.Process, command func(context.Context) (live.Command, error)) live.Unit {
	u.is.Store(&identity)
	return &program{unit: u, command: func(ctx context.Context) ([]string, error) {
		c, err := command(ctx)
		return append([]string{inImage(c.Program)}, c.Args...), err
	}}
}

// Start implements live.Unit.
func (p *program) Start(ctx context.Context) error {
	if !p.Status().Running() {
		words, err := p.command(ctx)
		if err != nil {
			return err
		}
		text, err := json.Marshal(words)
		if err == nil {
			err = p.pod.agent.Put(ctx, p.name(commandFile), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("command of %s: %w", p.unit.unit, err)
		}
	}
	if _, err := p.client.Start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", p.unit.unit, err)
	}
	if p.ready == nil {
		return nil
	}
	return until(ctx, "start "+p.unit.unit, p.ready)
}

// Stop implements live.Unit, and so do the others.
func (p *program) Stop(ctx context.Context) error   { return p.do(ctx, "stop", p.client.Stop) }
func (p *program) Kill(ctx context.Context) error   { return p.do(ctx, "kill", p.client.Kill) }
func (p *program) Pause(ctx context.Context) error  { return p.do(ctx, "pause", p.client.Pause) }
func (p *program) Resume(ctx context.Context) error { return p.do(ctx, "resume", p.client.Resume) }

func (p *program) do(ctx context.Context, verb string, act func(context.Context) (supervisor.State, error)) error {
	if _, err := act(ctx); err != nil {
		return fmt.Errorf("%s %s of pod %s: %w", verb, p.unit.unit, p.pod.name, err)
	}
	return nil
}

// stateTimeout bounds the question how a unit is.
const stateTimeout = 5 * time.Second

// Status implements live.Unit. A unit whose container is gone has crashed: nobody ended it through the supervisor.
func (p *program) Status() live.Status {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	s, err := p.client.State(ctx)
	if err != nil {
		return live.Status{Phase: live.Ended, Crashed: true}
	}
	return statusOf(s)
}

func statusOf(s supervisor.State) live.Status {
	switch s.State {
	case supervisor.Running:
		return live.Status{Phase: live.Running, PID: s.PID}
	case supervisor.Paused:
		return live.Status{Phase: live.Paused, PID: s.PID}
	case supervisor.Waiting:
		return live.Status{Phase: live.Never}
	}
	return live.Status{Phase: live.Ended, Crashed: s.State == supervisor.Exited}
}

// errForeign is the answer to what is to be done to processes that are not the harness's.
var errForeign = errors.New("it belongs to a cluster that the harness did not make")

// foreign is a process of the cluster that runs and is not to be touched.
type foreign struct{}

// Start implements live.Unit, and so do the others.
func (foreign) Start(context.Context) error  { return nil }
func (foreign) Stop(context.Context) error   { return errForeign }
func (foreign) Kill(context.Context) error   { return errForeign }
func (foreign) Pause(context.Context) error  { return errForeign }
func (foreign) Resume(context.Context) error { return errForeign }
func (foreign) Status() live.Status          { return live.Status{Phase: live.Running} }
