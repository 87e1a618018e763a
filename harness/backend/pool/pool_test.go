package pool

import (
	"context"
	"errors"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// fake is a plane that remembers what was done to it.
type fake struct {
	nodes         int
	resets, ended int
	cannot        error  // be reset
	spoiled       string // by its scenario
}

func (f *fake) Reset(context.Context, *scenario.Scenario) error { f.resets++; return f.cannot }
func (f *fake) Vacate(context.Context) string                   { return f.spoiled }
func (f *fake) Close(context.Context) error                     { f.ended++; return nil }

// world is a pool of fakes, and all that it booted.
type world struct {
	*Pool[*fake]
	booted []*fake
	used   *fake // by the environment made last
	after  Release
}

func newWorld(idle int) *world {
	w := &world{}
	w.Pool = New(Options[*fake]{
		Idle: idle,
		Fits: func(p *fake, s *scenario.Scenario) bool { return p.nodes == s.Topology.ControlPlanes },
		Boot: func(_ context.Context, s *scenario.Scenario, _ func(string)) (*fake, error) {
			w.booted = append(w.booted, &fake{nodes: s.Topology.ControlPlanes})
			return w.booted[len(w.booted)-1], nil
		},
		Begin: func(_ context.Context, p *fake, _ backend.Spec, release Release) (*live.Environment, error) {
			w.used, w.after = p, release
			return &live.Environment{}, nil
		},
	})
	return w
}

// run is a scenario on so many nodes from its beginning to its end.
func (w *world) run(t *testing.T, nodes int) *fake {
	t.Helper()
	spec := backend.Spec{Scenario: &scenario.Scenario{Topology: scenario.Topology{ControlPlanes: nodes}}, Progress: func(string) {}}
	if _, err := w.Prepare(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	return w.used
}

// over ends the scenario that began last.
func (w *world) over(t *testing.T, keep bool) {
	t.Helper()
	if err := w.after(t.Context(), &live.Environment{}, keep); err != nil {
		t.Fatal(err)
	}
}

func TestOneThatFitsIsUsedAgain(t *testing.T) {
	w := newWorld(2)
	three := w.run(t, 3)
	w.over(t, false)
	one := w.run(t, 1)
	w.over(t, false)
	if again := w.run(t, 3); again != three || again.resets != 2 || three.ended+one.ended != 0 {
		t.Errorf("%+v and %+v: expected the first to be reset and used again", three, one)
	}
}

func TestOneInUseIsNotShared(t *testing.T) {
	w := newWorld(2)
	one, other := w.run(t, 3), w.run(t, 3)
	if one == other {
		t.Error("two scenarios at the same time got the same plane")
	}
}

func TestASpoiledOneIsEnded(t *testing.T) {
	w := newWorld(2)
	p := w.run(t, 3)
	p.spoiled = "its nodes were changed"
	w.over(t, false)
	if next := w.run(t, 3); next == p || p.ended != 1 {
		t.Errorf("%+v: expected it to be ended", p)
	}
}

func TestOneThatCannotBeResetIsReplaced(t *testing.T) {
	w := newWorld(2)
	p := w.run(t, 3)
	w.over(t, false)
	p.cannot = errors.New("it is broken")
	if next := w.run(t, 3); next == p || p.ended != 1 {
		t.Errorf("%+v: expected another and this one ended", p)
	}
}

// TestANewOneThatCannotBeReset: a second new one would be no better.
func TestANewOneThatCannotBeReset(t *testing.T) {
	w := newWorld(2)
	boot := w.opts.Boot
	w.opts.Boot = func(ctx context.Context, s *scenario.Scenario, progress func(string)) (*fake, error) {
		p, err := boot(ctx, s, progress)
		p.cannot = errors.New("it is broken")
		return p, err
	}
	_, err := w.Prepare(t.Context(), backend.Spec{Scenario: &scenario.Scenario{}, Progress: func(string) {}})
	if err == nil || len(w.booted) != 1 || w.booted[0].ended != 1 {
		t.Errorf("error %v, booted %d: expected an error and the plane ended", err, len(w.booted))
	}
}

func TestThoseUsedLongestAgoMakeRoom(t *testing.T) {
	w := newWorld(2)
	for _, nodes := range []int{1, 3, 5} {
		w.run(t, nodes)
		w.over(t, false)
	}
	if w.booted[0].ended != 1 || w.booted[1].ended+w.booted[2].ended != 0 {
		t.Errorf("%+v %+v %+v: expected the first alone to be ended", *w.booted[0], *w.booted[1], *w.booted[2])
	}
}

func TestCloseEndsIdleUsedAndKept(t *testing.T) {
	w := newWorld(2)
	w.run(t, 1)
	w.over(t, false)
	w.run(t, 3)
	kept := w.run(t, 3)
	w.over(t, true)
	if len(w.Kept()) != 1 || kept.ended != 0 {
		t.Fatalf("%d kept, %+v: expected one kept that goes on", len(w.Kept()), kept)
	}
	for range 2 {
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range w.booted {
		if p.ended != 1 {
			t.Errorf("plane %d was ended %d times, expected once", i, p.ended)
		}
	}
	if _, err := w.Prepare(t.Context(), backend.Spec{Scenario: &scenario.Scenario{}, Progress: func(string) {}}); err == nil || w.booted[len(w.booted)-1].ended != 1 {
		t.Error("a closed pool gave an environment")
	}
}
