package swarm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kmsharness/kmsharness/harness/result"
)

// Serve simulates the seeds that it reads, one after another until there are no more, and writes what came of each. It is what a process of
// Options.Worker does, between its standard input and output.
func Serve(ctx context.Context, o Options, seeds io.Reader, done io.Writer) error {
	one, end, err := o.job()
	if err != nil {
		return err
	}
	defer end()
	from, to := json.NewDecoder(seeds), json.NewEncoder(done)
	for ctx.Err() == nil {
		var seed int64
		if err := from.Decode(&seed); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a seed: %w", err)
		}
		s, err := one(ctx, seed)
		if err == nil {
			err = to.Encode(s)
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return context.Cause(ctx)
}

// workerGrace is how long a worker may take to end after an interrupt before it is killed.
const workerGrace = 5 * time.Second

type worker struct {
	options Options
	cmd     *exec.Cmd // nil: none runs
	stop    context.CancelFunc
	stdin   io.Closer
	to      *json.Encoder
	from    *json.Decoder
	stderr  bytes.Buffer
}

func (w *worker) one(ctx context.Context, seed int64) (Seed, error) {
	if w.cmd == nil {
		if err := w.start(ctx); err != nil {
			return Seed{}, fmt.Errorf("start a process that simulates: %w", err)
		}
	}
	var s Seed
	err := w.to.Encode(seed)
	if err == nil {
		err = w.from.Decode(&s)
	}
	if err == nil || ctx.Err() != nil {
		return s, nil
	}
	w.stop()
	return w.lost(seed, errors.Join(err, w.end()))
}

func (w *worker) start(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	cmd := w.options.Worker(ctx)
	in, noIn := cmd.StdinPipe()
	out, noOut := cmd.StdoutPipe()
	if err := errors.Join(noIn, noOut); err != nil {
		stop()
		return err
	}
	w.stderr.Reset()
	cmd.Stderr = &w.stderr
	// It is a process group of its own, which gets one interrupt, however this process got its own. It must not outlive this process.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = workerGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		stop()
		return err
	}
	w.cmd, w.stop, w.stdin, w.to, w.from = cmd, stop, in, json.NewEncoder(in), json.NewDecoder(out)
	return nil
}

// end lets the process end, and returns how it did.
func (w *worker) end() error {
	if w.cmd == nil {
		return nil
	}
	defer w.stop()
	err := errors.Join(w.stdin.Close(), w.cmd.Wait())
	w.cmd = nil
	return err
}

// lost is a seed that ended its process: a program of it panicked, or its time stood still. The next seed has a new process.
func (w *worker) lost(seed int64, why error) (Seed, error) {
	o := w.options
	r := result.Result{Scenario: Name(seed), Backend: o.Backend.Name(), Seed: seed, Status: result.CouldNotRun, Reproduce: o.reproduce(seed), Dir: filepath.Join(o.Out, Name(seed))}
	log := filepath.Join(r.Dir, "stderr.log")
	r.Reasons = []string{fmt.Sprintf("the process that simulated it ended: %v; what it wrote is in %s", why, log)}
	file, err := o.keep(seed)
	err = errors.Join(err, os.MkdirAll(r.Dir, 0o755), os.WriteFile(log, w.stderr.Bytes(), 0o644), r.Save(r.Dir))
	return Seed{Seed: seed, Result: r, File: file}, err
}
