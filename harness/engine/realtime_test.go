package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// waiting gives a channel that closes when Wait returns.
func waiting(r engine.Runtime, ctx context.Context, until time.Time) chan struct{} {
	over := make(chan struct{})
	go func() { defer close(over); r.Wait(ctx, until) }()
	return over
}

func mustEnd(t *testing.T, what string, over chan struct{}) {
	t.Helper()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: Wait did not return", what)
	}
}

func TestRealTimeWait(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC))
	r := engine.RealTime(c)
	r.Wake()
	r.Wake() // two are as good as one
	mustEnd(t, "woken before", waiting(r, context.Background(), time.Time{}))
	ctx, cancel := context.WithCancel(context.Background())
	over := waiting(r, ctx, time.Time{})
	cancel()
	mustEnd(t, "cancelled", over)
	mustEnd(t, "in the past", waiting(r, context.Background(), c.Now().Add(-time.Second)))
	over = waiting(r, context.Background(), c.Now().Add(time.Minute))
	for !c.HasWaiters() {
		select {
		case <-over:
			t.Fatal("Wait returned before its time")
		case <-time.After(time.Millisecond):
		}
	}
	c.Step(time.Minute)
	mustEnd(t, "at its time", over)
}

// concurrent is the world with actions that run beside the engine in real time, and end only together.
type concurrent struct {
	*world
	mu      sync.Mutex
	running int
	both    chan struct{}
}

func (c *concurrent) Do(ctx context.Context, a scenario.Action) error {
	c.mu.Lock()
	if c.running++; c.running == 2 {
		close(c.both)
	}
	c.mu.Unlock()
	select {
	case <-c.both:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *concurrent) Finish(context.Context) error { return nil }

func runReal(ctx context.Context, t *testing.T, steps ...scenario.Step) ([]history.Event, error) {
	t.Helper()
	w := newWorld(t)
	w.agenda = nil
	s := scenario.Scenario{Name: "real", Title: "Real time.", Area: "plugin", Topology: scenario.Topology{Start: scenario.StartStopped}, Steps: steps}
	err := engine.Run(ctx, &concurrent{world: w, both: make(chan struct{})}, s.WithDefaults(), engine.Options{Log: w.log,
		Runtime: engine.RealTime(clock.RealClock{}), Limits: engine.Limits{Action: 5 * time.Second, StartUp: time.Nanosecond, Finish: time.Second}})
	return w.log.Events(), err
}

func rotate() scenario.Step {
	return scenario.Step{Action: &scenario.Rotate{}}
}

func TestParallelActionsRunTogether(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	never := scenario.Step{Expect: &scenario.Expectation{Mode: scenario.ModeNever, CEL: `rollup.degraded.exists`, Bound: scenario.D("20ms")}}
	stop := scenario.Step{Expect: &scenario.Expectation{Mode: scenario.ModeHolds, CEL: `rollup.degraded.exists`, Bound: scenario.D("20ms")}}
	events, err := runReal(ctx, t, scenario.Step{Parallel: []scenario.Step{rotate(), rotate(), never}}, stop)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for _, e := range events {
		if e.Action != nil && e.Action.State == history.ActionDone {
			done++
		}
	}
	if done < 2 {
		t.Errorf("%d actions were done, expected both", done)
	}
}

func TestCancelReachesActions(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	events, err := runReal(ctx, t, rotate()) // waits for a second action that never comes
	if err == nil {
		t.Error("no error")
	}
	if end := events[len(events)-1].End; end == nil || end.Complete {
		t.Errorf("end %+v", end)
	}
}
