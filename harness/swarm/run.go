package swarm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

type Options struct {
	From, To int64 // both included
	Jobs     int   // seeds at the same time
	// Out keeps what the seeds left that did not pass, and the scenario file of each; Keep keeps it of all.
	Out  string
	Keep bool
	// Plan says what is drawn.
	Plan Plan
	// Backend simulates.
	Backend backend.Backend
	// Worker is the command of a process that simulates the same by Serve; nil: this process simulates, one seed at a time. Each job has one.
	Worker func(ctx context.Context) *exec.Cmd
	// Done is told of every seed, one at a time, in no order.
	Done func(Seed)
}

type Seed struct {
	Seed    int64
	Result  result.Result
	Verdict check.Verdict
	Hash    [sha256.Size]byte // of the history
	File    string            // the scenario's, if it was kept
}

// Run simulates every seed, until ctx ends. An error is one of the harness, and says nothing of any seed.
func Run(ctx context.Context, o Options) error {
	jobs, running := errgroup.WithContext(ctx)
	seeds := make(chan int64)
	var telling sync.Mutex
	for range max(o.Jobs, 1) {
		jobs.Go(func() error {
			one, end, err := o.job()
			if err != nil {
				return err
			}
			defer end()
			for seed := range seeds {
				s, err := one(running, seed)
				if running.Err() != nil && s.Result.Status != result.Passed {
					return nil // it was interrupted, which says nothing of the seed
				}
				if err != nil {
					return fmt.Errorf("seed %d: %w", seed, err)
				}
				telling.Lock()
				o.Done(s)
				telling.Unlock()
			}
			return nil
		})
	}
	for seed := o.From; seed <= o.To && running.Err() == nil; seed++ {
		select {
		case seeds <- seed:
		case <-running.Done():
		}
	}
	close(seeds)
	return cmp.Or(jobs.Wait(), context.Cause(ctx))
}

// job simulates one seed at a time, in this process or in one of Worker's, until end.
func (o Options) job() (one func(ctx context.Context, seed int64) (Seed, error), end func(), err error) {
	if o.Worker != nil {
		w := &worker{options: o}
		return w.one, func() { _ = w.end() }, nil // everything that it was asked for has come
	}
	var buffer []history.Event
	compiler, err := view.NewCompiler()
	return func(ctx context.Context, seed int64) (Seed, error) { return o.one(ctx, seed, compiler, &buffer) }, func() {}, err
}

// one simulates a seed without leaving anything. If that is to be looked at, the same happens again, with files.
func (o Options) one(ctx context.Context, seed int64, compiler *view.Compiler, buffer *[]history.Event) (Seed, error) {
	s := o.Plan.Scenario(seed)
	out := Seed{Seed: seed}
	x := engine.Execution{Buffer: buffer, Verdict: func(v check.Verdict) { out.Verdict = v }, Options: engine.Options{
		Faults: standard.Faults{}, Seed: seed, Compiler: compiler, Reproduce: o.reproduce(seed)}}
	sum := sha256.New()
	x.History = sum
	out.Result = engine.Execute(ctx, o.Backend, s, x)
	sum.Sum(out.Hash[:0])
	if out.Result.Status == result.Passed && !o.Keep || ctx.Err() != nil {
		return out, nil
	}
	x.History, x.Out = nil, o.Out
	out.Result = engine.Execute(ctx, o.Backend, s, x)
	var err error
	out.File, err = o.keep(seed)
	return out, err
}

// reproduce is the command that simulates a seed again.
func (o Options) reproduce(seed int64) string {
	return fmt.Sprintf("kmsharness simulate --seeds %d%s", seed, o.Plan.flags())
}

func (o Options) keep(seed int64) (file string, err error) {
	text, err := o.Plan.Scenario(seed).Encode()
	if err != nil {
		return "", err
	}
	file = filepath.Join(o.Out, fileName(seed))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", fmt.Errorf("keep the scenario: %w", err)
	}
	return file, nil
}
