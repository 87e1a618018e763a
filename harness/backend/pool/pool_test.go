package pool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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
	booted    []*fake
	fails     int      // so many boots
	causes    []string // that were explained, and counted
	cannot    error    // be reset, of each plane that is booted
	beginning error    // of each environment on a plane
	used      *fake    // by the environment made last
	after     Release
}

func newWorld(idle int) *world {
	w := &world{}
	w.Pool = New(Options[*fake]{
		Idle: idle,
		Fits: func(p *fake, s *scenario.Scenario) bool { return p.nodes == s.Topology.ControlPlanes },
		Boot: func(_ context.Context, s *scenario.Scenario, _ func(string)) (*fake, error) {
			w.booted = append(w.booted, &fake{nodes: s.Topology.ControlPlanes, cannot: w.cannot})
			p := w.booted[len(w.booted)-1]
			if len(w.booted) <= w.fails {
				return p, errDown
			}
			return p, nil
		},
		Begin: func(_ context.Context, p *fake, _ backend.Spec, release Release) (*live.Environment, error) {
			if w.beginning != nil {
				return nil, w.beginning
			}
			w.used, w.after = p, release
			return &live.Environment{}, nil
		},
	})
	w.opts.Explain = func(_ context.Context, p *fake, failed error, dir string) string {
		return fmt.Sprintf("%s: %v, closed %d times", filepath.Base(dir), failed, p.ended)
	}
	return w
}

var errDown = errors.New("down")

// spec of a scenario on so many nodes.
func (w *world) spec(nodes int) backend.Spec {
	return backend.Spec{Scenario: &scenario.Scenario{Topology: scenario.Topology{ControlPlanes: nodes}}, OutDir: "out", Progress: func(string) {},
		FailedBoot: func(cause string) { w.causes = append(w.causes, cause) }}
}

// run is a scenario on so many nodes from its beginning to its end.
func (w *world) run(t *testing.T, nodes int) *fake {
	t.Helper()
	if _, err := w.Prepare(t.Context(), w.spec(nodes)); err != nil {
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

// What does not come up is explained before it is closed, counted, and booted once more.
func TestABootThatFailsIsRepeatedOnce(t *testing.T) {
	w := newWorld(1)
	w.fails = 1
	if p := w.run(t, 3); p != w.booted[1] || p.ended != 0 || w.booted[0].ended != 1 {
		t.Errorf("used %+v of %+v", p, w.booted)
	}
	if want := []string{"boot-1: down, closed 0 times"}; !slices.Equal(w.causes, want) {
		t.Errorf("counted %q, want %q", w.causes, want)
	}
}

func TestTwoBootsAreAllThereAre(t *testing.T) {
	for name, set := range map[string]func(*world){
		"boot": func(w *world) { w.fails = 3 }, "reset": func(w *world) { w.cannot = errDown }, "begin": func(w *world) { w.beginning = errDown },
	} {
		w := newWorld(1)
		set(w)
		_, err := w.Prepare(t.Context(), w.spec(3))
		if err == nil || !strings.Contains(err.Error(), "boot 1: boot-1: ") || !strings.Contains(err.Error(), "boot 2: boot-2: ") {
			t.Errorf("%s: %v, want both causes", name, err)
		}
		if len(w.booted) != 2 || w.booted[0].ended != 1 || w.booted[1].ended != 1 || len(w.causes) != 2 {
			t.Errorf("%s: booted %+v, counted %q", name, w.booted, w.causes)
		}
	}
}

// An interrupt is no failure of a boot: nobody waits for an explanation, nor for another try.
func TestAnInterruptedBootIsNotRepeated(t *testing.T) {
	w := newWorld(1)
	w.fails = 1
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Prepare(ctx, w.spec(3)); !errors.Is(err, errDown) || len(w.booted) != 1 || w.booted[0].ended != 1 || len(w.causes) != 0 {
		t.Errorf("%v, booted %+v, counted %q", err, w.booted, w.causes)
	}
}
