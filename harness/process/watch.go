package process

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

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
	e := Exit{Code: p.cmd.ProcessState.ExitCode(), Cause: p.asked, Forced: p.forced}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal()
	}
	if e.Cause == "" {
		e.Cause = CauseCrash
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
