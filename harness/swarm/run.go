package swarm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

// Options of a run over seeds.
type Options struct {
	From, To int64 // both included
	Jobs     int   // seeds at the same time
	// Out keeps what the seeds left that did not pass, and the scenario file of each; Keep keeps it of all.
	Out  string
	Keep bool
	// Plan says what is drawn.
	Plan Plan
	// Backend simulates.
	Backend *sim.Backend
	// Done is told of every seed, one at a time, in no order.
	Done func(Seed)

	compiler *view.Compiler // of all seeds
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
	parser, err := standard.Parser()
	if err != nil {
		return err
	}
	if o.compiler, err = view.NewCompiler(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seeds := make(chan int64)
	var all sync.WaitGroup
	var telling sync.Mutex
	for range max(o.Jobs, 1) {
		all.Go(func() {
			var room []history.Event
			for seed := range seeds {
				s, err := o.one(ctx, parser, seed, &room)
				if ctx.Err() != nil && s.Result.Status != result.Passed {
					return // it was interrupted, which says nothing of the seed
				}
				if err != nil {
					cancel(fmt.Errorf("seed %d: %w", seed, err))
					return
				}
				telling.Lock()
				o.Done(s)
				telling.Unlock()
			}
		})
	}
	for seed := o.From; seed <= o.To && ctx.Err() == nil; seed++ {
		select {
		case seeds <- seed:
		case <-ctx.Done():
		}
	}
	close(seeds)
	all.Wait()
	return context.Cause(ctx)
}

// one simulates a seed without leaving anything. If that is to be looked at, the same happens again, with files.
func (o Options) one(ctx context.Context, parser *scenario.Parser, seed int64, room *[]history.Event) (Seed, error) {
	text, file := o.Plan.Draw(seed), Name(seed)+".yaml"
	s, err := parser.Parse(file, text)
	if err != nil {
		return Seed{}, fmt.Errorf("what was drawn is no scenario: %w", err)
	}
	out := Seed{Seed: seed}
	x := engine.Execution{Buffer: room, Verdict: func(v check.Verdict) { out.Verdict = v }, Options: engine.Options{
		Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: seed, Compiler: o.compiler,
		Reproduce: fmt.Sprintf("kmsharness simulate --seeds %d%s", seed, o.Plan.flags())}}
	sum := sha256.New()
	x.History = sum
	out.Result = engine.Execute(ctx, o.Backend, s, x)
	sum.Sum(out.Hash[:0])
	if out.Result.Status == result.Passed && !o.Keep || ctx.Err() != nil {
		return out, nil
	}
	x.History, x.Out = nil, o.Out
	out.Result = engine.Execute(ctx, o.Backend, s, x)
	out.File = filepath.Join(o.Out, file)
	return out, os.WriteFile(out.File, text, 0o644)
}
