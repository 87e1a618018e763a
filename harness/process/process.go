package process

import (
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

func (p *Process) LogFile() string { return p.spec.LogFile }

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
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A paused process would see SIGTERM only when it runs again, and may have to wait for a child that was paused with it.
	if err := p.signalGroup(syscall.SIGCONT); err != nil {
		return err
	}
	timer := time.NewTimer(p.spec.stopTimeout())
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
	if err := p.signalGroup(syscall.SIGKILL); err != nil {
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

// signal reaches the process only: it tells its own children itself.
func (p *Process) signal(sig syscall.Signal) error { return p.send(sig, p.PID()) }

// signalGroup reaches the children of the process as well.
func (p *Process) signalGroup(sig syscall.Signal) error { return p.send(sig, -p.PID()) }

func (p *Process) send(sig syscall.Signal, to int) error {
	// The watcher holds mu while it reaps, so the id cannot belong to somebody else here.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == Exited {
		return nil
	}
	if err := unix.Kill(to, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %v to %s: %w", sig, p.Name(), err)
	}
	return nil
}
