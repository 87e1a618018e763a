package controlplane

import (
	"context"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/process"
)

// stopTimeout is more than the 5 s for which Go's HTTP server, when it shuts down, waits for connections that have not sent
// a request yet; API servers have such connections to themselves. They usually need 1 s.
const stopTimeout = 7 * time.Second

// unit is a place for one process of the control plane. Its methods are those of Etcd and APIServer.
type unit struct {
	*process.Unit
	name string
	opts Options
}

func newUnit(name string, opts Options) unit {
	return unit{Unit: process.NewUnit(name, opts.Supervisor), name: name, opts: opts}
}

// log receives what the process prints, in one file across restarts.
func (u *unit) log() string { return filepath.Join(u.opts.LogDir, u.name+".log") }

// run starts the process unless there is one.
func (u *unit) run(ctx context.Context, path string, args, env []string) (*process.Process, error) {
	return u.Launch(ctx, func(context.Context) (process.Spec, error) {
		return process.Spec{Path: path, Args: args, Env: append(env, collectLess), LogFile: u.log(), StopTimeout: stopTimeout, Nice: niceness}, nil
	})
}

// niceness of etcd and the API servers: several CPU seconds of a boot must not delay the probes and writes of a reporter
// that runs beside it and is judged by the half second.
const niceness = 5

// collectLess lets the heap grow to five times what is alive before it is collected. An API server of a test is started often and runs
// for a short time: until it is ready it takes a quarter less of a processor (2.05 s instead of 2.58 s, measured once, for one on an etcd with data).
const collectLess = "GOGC=400"
