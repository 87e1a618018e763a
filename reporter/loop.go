package reporter

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/reporter/core"
)

// Prober probes every plugin at once.
type Prober interface {
	All(ctx context.Context) []core.Result
}

// Publisher carries out a write and returns at the write's deadline at the latest.
type Publisher interface {
	Apply(ctx context.Context, write core.Action) error
}

// Loop is one reporter. All fields but Step are required.
type Loop struct {
	Config core.Config
	// Step decides; nil for core.Step. Reporters that are wrong on purpose replace it; see scenarios/mutants.
	Step      func(core.Config, core.State, core.Event) (core.State, core.Action)
	Prober    Prober
	Publisher Publisher
	Observer  *Observer
	Clock     clock.Clock
	// Jitter draws the jitter of one tick from [-limit, limit].
	Jitter func(limit time.Duration) time.Duration
}

// Run probes and writes until ctx ends. It starts no goroutine that outlives it.
func (l *Loop) Run(ctx context.Context) {
	step := l.Step
	if step == nil {
		step = core.Step
	}
	var state core.State
	event := l.timer()
	for ctx.Err() == nil {
		var action core.Action
		state, action = step(l.Config, state, event)
		event = l.do(ctx, action)
	}
}

// do carries out one action and says what came of it.
func (l *Loop) do(ctx context.Context, action core.Action) core.Event {
	switch action.Kind {
	case core.Probe:
		return l.probe(ctx)
	case core.Write:
		return l.write(ctx, action)
	}
	l.Observer.Waiting(action.Dropped)
	l.sleepUntil(ctx, action.Until)
	return l.timer()
}

func (l *Loop) probe(ctx context.Context) core.Event {
	l.Observer.TickBegan(l.Clock.Now())
	results := l.Prober.All(ctx)
	if ctx.Err() == nil { // a probe that the shutdown cut off says nothing about its plugin
		for _, r := range results {
			l.Observer.Probed(r, r.Entry(l.Config.Timing.Interval))
		}
	}
	return core.Event{Kind: core.Probed, Now: l.Clock.Now(), Results: results}
}

// write skips the write when the reporter is shutting down: the results may have been cut off by that.
func (l *Loop) write(ctx context.Context, action core.Action) core.Event {
	began := l.Clock.Now()
	if ctx.Err() == nil {
		err := l.Publisher.Apply(ctx, action)
		if ctx.Err() == nil {
			l.Observer.Wrote(err, l.Clock.Since(began), l.Clock.Now())
		}
	}
	return core.Event{Kind: core.Wrote, Now: l.Clock.Now()}
}

func (l *Loop) timer() core.Event {
	return core.Event{Kind: core.Timer, Now: l.Clock.Now(), Jitter: l.Jitter(l.Config.Timing.Jitter)}
}

func (l *Loop) sleepUntil(ctx context.Context, at time.Time) {
	wait := at.Sub(l.Clock.Now())
	if wait <= 0 {
		return
	}
	timer := l.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
