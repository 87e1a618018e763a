package process

import (
	"context"
	"fmt"
	"sync"
)

// Unit is a place for one process at a time: one that was stopped or killed stays away until it is launched again. Its methods may be called at the
// same time.
type Unit struct {
	name       string
	supervisor *Supervisor

	mu      sync.Mutex
	current *Process
}

// NewUnit is a place without a process. The processes have its name.
func NewUnit(name string, supervisor *Supervisor) *Unit {
	return &Unit{name: name, supervisor: supervisor}
}

// Process is the one that runs, or the last one; nil before the first start.
func (u *Unit) Process() *Process {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// Status of a Unit.
type Status struct {
	// Phase is empty before the first start.
	Phase State
	PID   int
	// Exit is how it has ended; zero while it runs.
	Exit Exit
	// Crashed: it has ended, and nobody asked it to. Output is then the end of its log, if it has one.
	Crashed bool
	Output  string
}

// Running says whether there is a process, paused or not.
func (s Status) Running() bool { return s.Phase == Running || s.Phase == Paused }

// Status of the process that runs, or of the last one.
func (u *Unit) Status() Status {
	p := u.Process()
	if p == nil {
		return Status{}
	}
	exit, ended := p.Exit()
	s := Status{Phase: p.State(), PID: p.PID(), Exit: exit, Crashed: ended && exit.Cause == CauseCrash}
	if s.Crashed && p.spec.LogFile != "" {
		s.Output = tail(p.spec.LogFile, crashBytes)
	}
	return s
}

// Launch starts a process unless one runs, and does not wait until it is ready. spec is asked at every start: sockets and files may have changed.
func (u *Unit) Launch(ctx context.Context, spec func(context.Context) (Spec, error)) (*Process, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.current != nil && u.current.State() != Exited {
		return u.current, nil
	}
	s, err := spec(ctx)
	if err != nil {
		return nil, err
	}
	s.Name = u.name
	p, err := u.supervisor.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	u.current = p
	return p, nil
}

// Stop ends the process with SIGTERM and returns when it is gone. Without a process it does nothing.
func (u *Unit) Stop(ctx context.Context) error {
	if p := u.Process(); p != nil {
		return p.Stop(ctx)
	}
	return nil
}

// Kill ends the process with SIGKILL and returns when it is gone. Without a process it does nothing.
func (u *Unit) Kill(context.Context) error {
	if p := u.Process(); p != nil {
		return p.Kill()
	}
	return nil
}

// Pause freezes the process (SIGSTOP) and returns when it stands still.
func (u *Unit) Pause(ctx context.Context) error {
	p := u.Process()
	if p == nil {
		return fmt.Errorf("pause %s: it was never started", u.name)
	}
	return p.Pause(ctx)
}

// Resume lets a paused process continue.
func (u *Unit) Resume(context.Context) error {
	p := u.Process()
	if p == nil {
		return fmt.Errorf("resume %s: it was never started", u.name)
	}
	return p.Resume()
}
