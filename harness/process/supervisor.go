package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"sync"
)

// ErrClosed is returned by Start after Close.
var ErrClosed = errors.New("the supervisor is closed")

// Options of a Supervisor; the zero value works.
type Options struct {
	// RunDir marks the children (EnvRunDir), so that leftovers can be found; empty: they are not marked.
	RunDir string
	// OnChange is told every change, one at a time and in order for each process. It must not call the Supervisor.
	OnChange func(Change)
}

// Supervisor owns child processes.
type Supervisor struct {
	opts Options

	// forks are carried out by one thread that lives as long as the supervisor: the kernel sends the parent-death
	// signal when the *thread* that forked ends, not when the process does.
	forks chan func()
	ended chan struct{}

	mu       sync.Mutex
	closed   bool
	children map[*Process]struct{}

	notify sync.Mutex // serialises OnChange
}

// New starts a supervisor without children. Its owner must Close it.
func New(opts Options) *Supervisor {
	s := &Supervisor{opts: opts, forks: make(chan func()), ended: make(chan struct{}), children: map[*Process]struct{}{}}
	go s.forkLoop()
	return s
}

// forkLoop returns with its thread locked, which ends the thread; every child is gone by then.
func (s *Supervisor) forkLoop() {
	defer close(s.ended)
	runtime.LockOSThread()
	for fork := range s.forks {
		fork()
	}
}

// Start starts a process and returns when it runs (not when it is ready). It lives until it ends or is told to: ctx
// bounds the start only.
func (s *Supervisor) Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	cmd, log, err := spec.command(s.opts.RunDir)
	if err != nil {
		return nil, err
	}
	if log != nil {
		defer log.Close()
	}
	p := &Process{spec: spec, cmd: cmd, supervisor: s, done: make(chan struct{}), state: Running}
	// Held until the process is in the table, so that Close cannot miss it.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("start %s: %w", spec.Name, ErrClosed)
	}
	if err := s.fork(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	s.children[p] = struct{}{}
	p.notify(Running, CauseStart, nil)
	go p.watch()
	return p, nil
}

func (s *Supervisor) fork(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.forks <- func() { result <- cmd.Start() }
	return <-result
}

// Children are the processes that have not ended, in no order.
func (s *Supervisor) Children() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.children))
}

// Close stops all children at the same time, each with its own StopTimeout, and returns when all are gone. When ctx
// ends they are killed at once. It is safe to call twice.
func (s *Supervisor) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	children := s.Children()
	errs := make([]error, len(children))
	var all sync.WaitGroup
	for i, p := range children {
		all.Go(func() { errs[i] = p.Stop(ctx) })
	}
	all.Wait()
	if first {
		close(s.forks)
	}
	<-s.ended
	return errors.Join(errs...)
}
