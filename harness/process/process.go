package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one started child. Its methods may be called at the same time and after it ended.
type Process struct {
	spec       Spec
	cmd        *exec.Cmd
	supervisor *Supervisor
	done       chan struct{}

	control sync.Mutex // one of Pause and Resume at a time
	mu      sync.Mutex
	state   State
	asked   Cause // Stop or Kill was called
	forced  bool
	exit    Exit
}

func (p *Process) Name() string { return p.spec.Name }

// PID is the process id, also that of its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and its state is recorded.
func (p *Process) Done() <-chan struct{} { return p.done }

// State of this moment.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Exit is how it ended; false while it lives.
func (p *Process) Exit() (Exit, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit, p.state == Exited
}

// Stop sends SIGTERM to the process and returns when it is gone. A process that does not end within its StopTimeout, or
// before ctx ends, is killed. Stopping a process that has ended is no error.
func (p *Process) Stop(ctx context.Context) error {
	p.ask(CauseStop)
	if err := p.send(syscall.SIGTERM, p.PID()); err != nil { // the process tells its own children
		return err
	}
	// A paused process would see SIGTERM only when it runs again, and may have to wait for a child that was paused with it.
	if err := p.send(syscall.SIGCONT, p.group()); err != nil {
		return err
	}
	timer := time.NewTimer(cmp.Or(p.spec.StopTimeout, DefaultStopTimeout))
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.forced = true
	p.mu.Unlock()
	return p.end()
}

// Kill sends SIGKILL to the process group and returns when the process is gone.
func (p *Process) Kill() error {
	p.ask(CauseKill)
	return p.end()
}

func (p *Process) end() error {
	if err := p.send(syscall.SIGKILL, p.group()); err != nil {
		return err
	}
	<-p.done // SIGKILL cannot be ignored, so this wait is short
	return nil
}

func (p *Process) ask(c Cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == "" {
		p.asked = c
	}
}

// group is for a signal that has to reach the children of the process as well.
func (p *Process) group() int { return -p.PID() }

func (p *Process) send(sig syscall.Signal, to int) error {
	// The watcher holds mu while it reaps, so the id cannot belong to another process here.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Exited {
		return nil
	}
	if err := unix.Kill(to, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %v to %s: %w", sig, p.spec.Name, err)
	}
	return nil
}
