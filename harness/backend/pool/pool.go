package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// ControlPlane is one that can be used again.
type ControlPlane interface {
	comparable
	// Reset makes it as good as new for a scenario and proves that it is. An error ends the plane.
	Reset(ctx context.Context, s *scenario.Scenario) error
	// Vacate does what has to be done when a scenario is over, and says why the plane cannot be used again; empty: it can.
	Vacate(ctx context.Context) string
	// Close ends everything of it.
	Close(ctx context.Context) error
}

type Options[P ControlPlane] struct {
	// Fits says whether a scenario can run on a plane, once that is reset.
	Fits func(p P, s *scenario.Scenario) bool
	// Boot makes a plane for a scenario. On error it gives what was made of it, which the pool closes, or nothing.
	Boot func(ctx context.Context, s *scenario.Scenario, progress func(string)) (P, error)
	// Begin makes an environment on a plane that was reset. The environment calls release when its scenario is over.
	Begin func(ctx context.Context, p P, spec backend.Spec, release Release) (*live.Environment, error)
	// Explain keeps in a folder, which it makes, what tells why a new plane did not come up, and returns the cause in one line. It
	// comes before the plane is closed.
	Explain func(ctx context.Context, p P, failed error, dir string) string
	// Idle is how many planes are kept while none uses them.
	Idle int
}

type Release = func(ctx context.Context, e *live.Environment, keep bool) error

// Pool of planes. Its methods may be called at the same time.
type Pool[P ControlPlane] struct {
	opts Options[P]

	mu     sync.Mutex
	closed bool
	all    map[P]struct{} // all that live
	idle   []P            // the one used last is at the end
	kept   []*live.Environment
}

func New[P ControlPlane](opts Options[P]) *Pool[P] {
	return &Pool[P]{opts: opts, all: map[P]struct{}{}}
}

// Prepare gives an environment for a scenario, on an idle plane if one fits and can be reset, else on a new one. A new one that does
// not come up is booted once more, and spec.FailedBoot counts it.
func (b *Pool[P]) Prepare(ctx context.Context, spec backend.Spec) (*live.Environment, error) {
	if p, ok := b.take(spec.Scenario); ok {
		e, err := b.begin(ctx, p, spec)
		if err == nil {
			return e, nil
		}
		closing := b.discard(ctx, p)
		if ctx.Err() != nil || closing != nil {
			return nil, errors.Join(err, closing)
		}
		spec.Progress("the control plane at hand cannot be used again: " + firstLine(err))
	}
	e, again, err := b.fresh(ctx, spec, 1)
	if !again {
		return e, err
	}
	spec.Progress("the control plane did not come up and is booted once more: " + firstLine(err))
	e, _, second := b.fresh(ctx, spec, 2)
	if second != nil {
		return nil, errors.Join(err, second)
	}
	return e, nil
}

// fresh boots a plane and begins on it. Of one that does not come up it keeps what tells why, and again reports whether another try makes sense.
func (b *Pool[P]) fresh(ctx context.Context, spec backend.Spec, attempt int) (e *live.Environment, again bool, err error) {
	p, err := b.boot(ctx, spec)
	if err == nil {
		if e, err = b.begin(ctx, p, spec); err == nil {
			return e, false, nil
		}
	}
	var none P
	if p == none {
		return nil, false, err
	}
	if spec.OutDir != "" && !errors.Is(context.Cause(ctx), context.Canceled) { // after an interrupt the user waits for the end
		dir := filepath.Join(spec.OutDir, fmt.Sprintf("boot-%d", attempt))
		cause := b.opts.Explain(context.WithoutCancel(ctx), p, err, dir)
		err = fmt.Errorf("boot %d: %s: %w (see %s)", attempt, cause, err, dir)
		if spec.FailedBoot != nil {
			spec.FailedBoot(cause)
		}
	}
	closing := b.discard(ctx, p)
	return nil, ctx.Err() == nil && closing == nil, errors.Join(err, closing)
}

func (b *Pool[P]) begin(ctx context.Context, p P, spec backend.Spec) (*live.Environment, error) {
	if err := p.Reset(ctx, spec.Scenario); err != nil {
		return nil, fmt.Errorf("reset: %w", err)
	}
	release := func(ctx context.Context, e *live.Environment, keep bool) error {
		if keep {
			b.keep(e)
			return nil
		}
		return b.release(ctx, p)
	}
	return b.opts.Begin(ctx, p, spec, release)
}

// boot makes room among the idle planes first.
func (b *Pool[P]) boot(ctx context.Context, spec backend.Spec) (P, error) {
	var none P
	if err := b.shrink(ctx, b.opts.Idle-1); err != nil {
		return none, err
	}
	p, err := b.opts.Boot(ctx, spec.Scenario, spec.Progress)
	if err != nil {
		return p, err
	}
	b.mu.Lock()
	closed := b.closed
	b.all[p] = struct{}{}
	b.mu.Unlock()
	if closed {
		return none, errors.Join(errors.New("the backend is closed"), b.discard(ctx, p))
	}
	return p, nil
}

// take gives the idle plane used last that fits, if there is one.
func (b *Pool[P]) take(s *scenario.Scenario) (p P, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range slices.Backward(b.idle) {
		if b.opts.Fits(p, s) {
			b.idle = slices.Delete(b.idle, i, i+1)
			return p, true
		}
	}
	return p, false
}

// keep remembers an environment that was released to be looked at; it runs until Close.
func (b *Pool[P]) keep(e *live.Environment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, e)
}

// release takes a plane back when its scenario is over: it is kept for later, or ended.
func (b *Pool[P]) release(ctx context.Context, p P) error {
	if p.Vacate(ctx) != "" {
		return b.discard(ctx, p)
	}
	b.mu.Lock()
	if !b.closed {
		b.idle = append(b.idle, p)
	}
	b.mu.Unlock()
	return b.shrink(ctx, b.opts.Idle)
}

// Kept are the environments that were left running, in the order of their release.
func (b *Pool[P]) Kept() []*live.Environment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept)
}

// shrink ends idle planes, the one used longest ago first, until at most n are left.
func (b *Pool[P]) shrink(ctx context.Context, n int) error {
	b.mu.Lock()
	surplus := slices.Clone(b.idle[:max(0, len(b.idle)-max(n, 0))])
	b.idle = b.idle[len(surplus):]
	b.mu.Unlock()
	var errs []error
	for _, p := range surplus {
		errs = append(errs, b.discard(ctx, p))
	}
	return errors.Join(errs...)
}

func (b *Pool[P]) discard(ctx context.Context, p P) error {
	b.mu.Lock()
	delete(b.all, p)
	b.mu.Unlock()
	// A scenario that was interrupted must leave nothing behind.
	if err := p.Close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("end a control plane: %w", err)
	}
	return nil
}

// Close ends all planes, also those that were kept. It is safe to call twice.
func (b *Pool[P]) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	all := b.all
	b.all, b.idle = map[P]struct{}{}, nil
	b.mu.Unlock()
	var errs []error
	for p := range all {
		errs = append(errs, p.Close(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}

// Explain writes why a control plane did not come up into a folder, for people: the error, what was said besides, and what could not be kept of it. It
// returns the first line of the error, which is what failed.
func Explain(dir string, failed error, said string, missing error) (cause string) {
	text := strings.TrimSpace(failed.Error() + "\n" + said)
	if missing != nil {
		text += fmt.Sprintf("\nnot to be had: %v", missing)
	}
	_ = os.WriteFile(filepath.Join(dir, "error"), []byte(text+"\n"), 0o644)
	return firstLine(failed)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Repair is what brings the nodes of a plane back that scenarios expect: Out leave before In join.
type Repair struct{ Out, In []string }

// PlanRepair compares the nodes that are there with those that are wanted. A node that was isolated, which leaves tells, is a stranger
// whatever its name. It is an error if none of the wanted nodes is left: nothing is there that others could join.
func PlanRepair(wanted, there []string, leaves func(string) bool) (Repair, error) {
	var good []string
	var r Repair
	for _, name := range there {
		if leaves(name) || !slices.Contains(wanted, name) {
			r.Out = append(r.Out, name)
			continue
		}
		good = append(good, name)
	}
	for _, name := range wanted {
		if !slices.Contains(good, name) {
			r.In = append(r.In, name)
		}
	}
	if len(good) == 0 {
		return Repair{}, errors.New("none of the nodes is left that the control plane was made with")
	}
	return r, nil
}
