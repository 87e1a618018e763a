package process

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/internal/poll"
)

// pausePoll is how often Pause looks whether the process has stopped; that takes microseconds on an idle machine.
const pausePoll = time.Millisecond

// Pause freezes the process and its children (SIGSTOP) and returns when it stands still. Pausing twice is no error.
func (p *Process) Pause(ctx context.Context) error {
	p.control.Lock()
	defer p.control.Unlock()
	if p.State() == Paused {
		return nil
	}
	// The process before its children: while it starts one (vfork) it can only stop when the child has got to its own
	// program, which a child that is stopped halfway never does.
	if err := p.send(syscall.SIGSTOP, p.PID()); err != nil {
		return err
	}
	if err := p.waitStopped(ctx); err != nil {
		return fmt.Errorf("pause %s: %w", p.spec.Name, err)
	}
	if err := p.send(syscall.SIGSTOP, p.group()); err != nil {
		return err
	}
	return p.become(Paused, CausePause)
}

// Resume lets a paused process continue. Resuming a running process is no error.
func (p *Process) Resume() error {
	p.control.Lock()
	defer p.control.Unlock()
	if p.State() == Running {
		return nil
	}
	if err := p.send(syscall.SIGCONT, p.group()); err != nil {
		return err
	}
	return p.become(Running, CauseResume)
}

// become records a change of a living process.
func (p *Process) become(state State, cause Cause) error {
	p.mu.Lock()
	if p.state == Exited {
		defer p.mu.Unlock()
		return fmt.Errorf("%s %s: it has ended (%v)", cause, p.spec.Name, p.exit)
	}
	p.state = state
	p.mu.Unlock()
	p.notify(state, cause, nil)
	return nil
}

// waitStopped polls, because a blocking wait for a stop is not woken when the process dies instead: become says that it has ended.
func (p *Process) waitStopped(ctx context.Context) error {
	return poll.Until(ctx, pausePoll, func() (bool, error) {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.PID(), &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECHILD) {
			err = nil
		}
		return info.Signo != 0 || p.State() == Exited, err
	})
}
