package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/process"
)

// stopTimeout is more than the 5 s for which Go's HTTP server, when it shuts down, waits for connections that have not sent
// a request yet; API servers have such connections to themselves. They usually need 1 s.
const stopTimeout = 7 * time.Second

// unit is a place for one process at a time. Its methods are those of Etcd and APIServer.
type unit struct {
	name string
	opts Options

	mu      sync.Mutex
	current *process.Process
}

// Process is the one that runs, or the last one; nil before the first start.
func (u *unit) Process() *process.Process {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// Running says whether there is a process, paused or not.
func (u *unit) Running() bool {
	p := u.Process()
	return p != nil && p.State() != process.Exited
}

// LogFile receives what the process prints, in one file across restarts.
func (u *unit) LogFile() string { return u.opts.logFile(u.name) }

// Stop ends the process with SIGTERM and returns when it is gone. Without a process it does nothing.
func (u *unit) Stop(ctx context.Context) error {
	if p := u.Process(); p != nil {
		return p.Stop(ctx)
	}
	return nil
}

// Kill ends the process with SIGKILL and returns when it is gone. Without a process it does nothing.
func (u *unit) Kill() error {
	if p := u.Process(); p != nil {
		return p.Kill()
	}
	return nil
}

// Pause freezes the process (SIGSTOP) and returns when it stands still.
func (u *unit) Pause(ctx context.Context) error {
	p := u.Process()
	if p == nil {
		return fmt.Errorf("pause %s: it was never started", u.name)
	}
	return p.Pause(ctx)
}

// Resume lets a paused process continue.
func (u *unit) Resume() error {
	p := u.Process()
	if p == nil {
		return fmt.Errorf("resume %s: it was never started", u.name)
	}
	return p.Resume()
}

// run starts the process unless there is one.
func (u *unit) run(ctx context.Context, path string, args, env []string) (*process.Process, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.current != nil && u.current.State() != process.Exited {
		return u.current, nil
	}
	p, err := u.opts.Supervisor.Start(ctx, process.Spec{
		Name: u.name, Path: path, Args: args, Env: append(env, collectLess), LogFile: u.LogFile(), StopTimeout: stopTimeout, Nice: niceness,
	})
	if err != nil {
		return nil, err
	}
	u.current = p
	return p, nil
}

// niceness of etcd and the API servers: several CPU seconds of a boot must not delay the probes and writes of a reporter
// that runs beside it and is judged by the half second.
const niceness = 5

// collectLess lets the heap grow to five times what is alive before it is collected. An API server of a test is started often and runs
// for a short time: until it is ready it takes a quarter less of a processor (2.05 s instead of 2.58 s, measured once, for one on an etcd with data).
const collectLess = "GOGC=400"
