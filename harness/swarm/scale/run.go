package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Options of a run.
type Options struct {
	Nodes  int
	Length time.Duration
	Seed   int64
	// Sim is how it is simulated; only changes are recorded.
	Sim sim.Options
	// Now is the machine's clock.
	Now func() time.Time
	// Progress is told how far it is, every virtual hour.
	Progress func(Result)
}

// When a fault of an hour begins, and how long it lasts: longer than any bound.
const (
	faultEvery = time.Hour
	faultAfter = 20 * time.Minute
	faultLasts = 10 * time.Minute
)

// Run simulates.
func Run(ctx context.Context, o Options) (Result, error) {
	o.Sim.Changes = true
	o.Sim.CPUs = sim.Unlimited // how many nodes an API server can serve at all is what `simulate limits` says
	b, log := sim.New(o.Sim), history.NewStream()
	s := (&scenario.Scenario{Name: fmt.Sprintf("scale-%d", o.Nodes), Topology: scenario.Topology{ControlPlanes: o.Nodes}}).WithDefaults()
	began := o.Now()
	env, err := b.Prepare(ctx, backend.Spec{Scenario: s, Seed: o.Seed, Log: log})
	if err != nil {
		return Result{}, fmt.Errorf("scale: %w", err)
	}
	timed, ok := env.(backend.Timed)
	if !ok {
		return Result{}, errors.New("scale: the simulation has no time of its own")
	}
	r := &run{Options: o, env: env, time: timed.Runtime(), began: began, watched: newWatcher(o.Nodes, b.Timing())}
	defer log.Subscribe(r.watched.see)()
	err = r.pass(ctx)
	r.time.Join()
	out := r.result()
	return out, errors.Join(err, r.failed, env.Release(context.WithoutCancel(ctx), false))
}

// run is a run under way.
type run struct {
	Options
	env     backend.Environment
	time    backend.Runtime
	began   time.Time
	watched *watcher
	failed  error
}

// pass lets time pass to the end, with a fault in each hour.
func (r *run) pass(ctx context.Context) error {
	start := r.time.Now()
	rng := rand.New(rand.NewPCG(uint64(r.Seed), 0x7363616c65))
	for hour := time.Duration(0); hour < r.Length; hour += faultEvery {
		end := start.Add(min(hour+faultEvery, r.Length))
		if at := start.Add(hour + faultAfter); !at.Add(faultLasts).After(end) {
			r.until(ctx, at)
			node := fmt.Sprintf("cp-%d", rng.IntN(r.Nodes)+1)
			r.do(ctx, scenario.VerbKill, node)
			r.watched.failing(node, r.time.Now())
			r.until(ctx, at.Add(faultLasts))
			r.do(ctx, scenario.VerbStart, node)
			r.watched.recovering(r.time.Now())
		}
		r.until(ctx, end)
		r.Progress(r.result())
		if err := errors.Join(ctx.Err(), r.failed); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) until(ctx context.Context, at time.Time) {
	for r.time.Now().Before(at) && ctx.Err() == nil {
		r.time.Wait(ctx, at)
	}
}

// do acts on a node's plugin, and lets time pass until it has taken effect.
func (r *run) do(ctx context.Context, verb scenario.Verb, node string) {
	done := false
	r.time.Go(func() {
		err := r.env.Do(ctx, &scenario.Process{Do: verb, Target: scenario.Selector{Role: history.RolePlugin, Node: node}})
		if err != nil && !errors.Is(err, kernel.ErrClosed) {
			r.failed = errors.Join(r.failed, err)
		}
		done = true
		r.time.Wake()
	})
	for !done && ctx.Err() == nil {
		r.time.Wait(ctx, r.time.Now().Add(time.Minute))
	}
}
