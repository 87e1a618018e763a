package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/hold"
)

// stateTimeout bounds the question how a unit is; its answer comes within a millisecond, unless its container is gone.
const stateTimeout = 2 * time.Second

// readyPoll is how often a starting unit is asked whether it answers.
const readyPoll = 50 * time.Millisecond

// held is a Unit below hold in a container.
type held struct {
	name   string
	client hold.Client
	// command is asked at every start and written where hold reads it; nil: the container knows it.
	command func(context.Context) ([]string, error)
	file    string // of the command, on this machine
	ready   func(context.Context) error
}

var _ live.Unit = (*held)(nil)

// newHeld is the unit of a name in a folder of this machine.
func newHeld(dir, name string) (*held, error) {
	c, err := hold.NewClient("unix://" + filepath.Join(dir, holdSocket(name)))
	if err != nil {
		return nil, fmt.Errorf("unit %s: %w", name, err)
	}
	return &held{name: name, client: c, file: filepath.Join(dir, commandFile(name))}, nil
}

// Start implements live.Unit.
func (u *held) Start(ctx context.Context) error {
	if u.command != nil && !u.Status().Lives() {
		if err := u.writeCommand(ctx); err != nil {
			return err
		}
	}
	if _, err := u.client.Start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", u.name, err)
	}
	if u.ready == nil {
		return nil
	}
	return until(ctx, readyPoll, "start "+u.name, u.ready)
}

func (u *held) writeCommand(ctx context.Context) error {
	words, err := u.command(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(words)
	if err != nil {
		return err
	}
	if err := os.WriteFile(u.file, text, 0o644); err != nil {
		return fmt.Errorf("command of %s: %w", u.name, err)
	}
	return nil
}

// Stop implements live.Unit.
func (u *held) Stop(ctx context.Context) error { return u.do(ctx, "stop", u.client.Stop) }

// Kill implements live.Unit.
func (u *held) Kill(ctx context.Context) error { return u.do(ctx, "kill", u.client.Kill) }

// Pause implements live.Unit.
func (u *held) Pause(ctx context.Context) error { return u.do(ctx, "pause", u.client.Pause) }

// Resume implements live.Unit.
func (u *held) Resume(ctx context.Context) error { return u.do(ctx, "resume", u.client.Resume) }

func (u *held) do(ctx context.Context, verb string, act func(context.Context) (hold.State, error)) error {
	if _, err := act(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", verb, u.name, err)
	}
	return nil
}

// Status implements live.Unit. A unit whose container is gone has crashed: nobody ended it through hold.
func (u *held) Status() live.Status {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	s, err := u.client.State(ctx)
	if err != nil {
		return live.Status{Phase: live.Ended, Crashed: true}
	}
	switch s.State {
	case hold.Running:
		return live.Status{Phase: live.Running, PID: s.PID}
	case hold.Paused:
		return live.Status{Phase: live.Paused, PID: s.PID}
	case hold.Waiting:
		return live.Status{Phase: live.Never}
	default:
		return live.Status{Phase: live.Ended, Crashed: s.State == hold.Exited}
	}
}

// until asks until the answer is nil.
func until(ctx context.Context, every time.Duration, what string, is func(context.Context) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := is(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		}
	}
}
