package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
)

// Real is a control plane of processes.
type Real interface {
	ControlPlane
	Parts() *cluster.ControlPlane
}

// Shared is what the control planes of a backend have in common: a folder, which goes with the backend, and the programs that are run.
type Shared struct {
	Dir      string
	Programs *cluster.Programs
}

// BackendOptions of a Backend.
type BackendOptions[P Real] struct {
	// Pool is without Begin, which a Backend does the same way for all.
	Pool Options[P]
	Name string
	// System is read when a scenario begins: SetUp may change it.
	System *undertest.System
	// SetUp makes what a backend shares beside Shared. It is called before the first boot, and again if it failed.
	SetUp func(ctx context.Context, s Shared, progress func(string)) error
}

// Backend runs scenarios on a pool of real control planes. Its methods may be called at the same time.
type Backend[P Real] struct {
	opts BackendOptions[P]
	pool *Pool[P]

	mu     sync.Mutex
	closed bool
	dir    *process.RunDir // made by the first Prepare
	shared Shared
	booted int
}

// NewBackend starts nothing.
func NewBackend[P Real](o BackendOptions[P]) *Backend[P] {
	b := &Backend[P]{opts: o}
	o.Pool.Begin = func(ctx context.Context, p P, spec backend.Spec, release Release) (*live.Environment, error) {
		return live.Begin(ctx, p.Parts(), spec, live.Options{System: *o.System, Programs: b.shared.Programs, Release: release})
	}
	b.pool = New(o.Pool)
	return b
}

func (b *Backend[P]) Name() string { return b.opts.Name }

// Timing implements backend.Backend. It is the same on all: what is slower on one, starting API servers, is in no bound.
func (b *Backend[P]) Timing() contract.Timing { return cluster.Timing() }

func (b *Backend[P]) Prepare(ctx context.Context, spec backend.Spec) (backend.Environment, error) {
	if spec.Progress == nil {
		spec.Progress = func(string) {}
	}
	_, err := b.Shared(ctx, spec.Progress)
	if err == nil {
		var e *live.Environment
		if e, err = b.pool.Prepare(ctx, spec); err == nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("%s backend: prepare scenario %s: %w", b.opts.Name, spec.Scenario.Name, err)
}

// Shared makes what all control planes share, unless it is there.
func (b *Backend[P]) Shared(ctx context.Context, progress func(string)) (s Shared, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return s, errors.New("the backend is closed")
	}
	if b.dir != nil {
		return b.shared, nil
	}
	dir, err := process.NewRunDir(ctx)
	if err != nil {
		return s, err
	}
	s = Shared{dir.Path, cluster.NewPrograms(dir.Path, progress)}
	s.Programs.Plugin = b.opts.System.Plugin
	if s.Programs.PluginArgs, err = command.Split(b.opts.System.FakePlugin.Args); err == nil {
		err = b.opts.SetUp(ctx, s, progress)
	}
	if err != nil {
		return s, errors.Join(err, dir.Close())
	}
	b.dir, b.shared = dir, s
	return s, nil
}

// Number counts the boots, from 1: control planes have names and folders of their own.
func (b *Backend[P]) Number() (int, Shared) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.booted++
	return b.booted, b.shared
}

// Kept are the environments that were left running, in the order of their release.
func (b *Backend[P]) Kept() []*live.Environment { return b.pool.Kept() }

// Close implements backend.Backend. It also ends environments that were kept.
func (b *Backend[P]) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	dir := b.dir
	b.dir = nil
	b.mu.Unlock()
	err := b.pool.Close(ctx)
	if dir != nil {
		err = errors.Join(err, dir.Close())
	}
	return err
}
