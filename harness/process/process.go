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
	p.asked = cmp.Or(p.asked, c)
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

// progressEvery is how often a program that takes minutes says that it goes on.
const progressEvery = 5 * time.Second

// Run runs a program until it ends, and calls progress now and then. An error has the end of its log. Neither the program nor its children outlive Run.
func Run(ctx context.Context, spec Spec, progress func()) error {
	supervisor := New(Options{})
	defer supervisor.Close(ctx) //nolint:errcheck // the program's own result matters
	p, err := supervisor.Start(ctx, spec)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.Done():
			if exit, _ := p.Exit(); exit.Code != 0 {
				return fmt.Errorf("%s: %v; the end of %s:\n%s", spec.Name, exit, spec.LogFile, tail(spec.LogFile, tailBytes))
			}
			return nil
		case <-ctx.Done():
			return errors.Join(ctx.Err(), p.Kill())
		case <-ticker.C:
			progress()
		}
	}
}

// watch waits for the end of the process.
func (p *Process) watch() {
	waitUntilDead(p.PID())
	p.mu.Lock()
	// The dead leader still holds the id of the group: every process left in it is ours.
	_ = unix.Kill(-p.PID(), unix.SIGKILL)
	_ = p.cmd.Wait() // its error repeats the exit state
	p.exit = p.exitState()
	p.state = Exited
	exit := p.exit
	p.mu.Unlock()
	p.notify(Exited, exit.Cause, &exit)
	p.supervisor.mu.Lock()
	delete(p.supervisor.children, p)
	p.supervisor.mu.Unlock()
	close(p.done)
}

// waitUntilDead returns when the process is a zombie, and leaves it one.
func waitUntilDead(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func (p *Process) exitState() Exit {
	e := Exit{Code: p.cmd.ProcessState.ExitCode(), Cause: cmp.Or(p.asked, CauseCrash), Forced: p.forced}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal()
	}
	return e
}

func (p *Process) notify(state State, cause Cause, exit *Exit) {
	s := p.supervisor
	if s.opts.OnChange == nil {
		return
	}
	s.notify.Lock()
	defer s.notify.Unlock()
	change := Change{Time: time.Now(), Name: p.spec.Name, PID: p.PID(), State: state, Cause: cause, Exit: exit}
	if cause == CauseCrash && p.spec.LogFile != "" {
		change.Output = tail(p.spec.LogFile, crashBytes)
	}
	s.opts.OnChange(change)
}
