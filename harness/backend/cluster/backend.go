package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Name of the backend.
const Name = "cluster"

// Backend deploys to an existing cluster once, and uses that for scenario after scenario. Only one run at a time is possible: the CRDs have
// names that all share.
type Backend struct {
	opts   Options
	planes *pool.Pool[*controlPlane]

	mu     sync.Mutex
	closed bool
	runDir *process.RunDir // made by the first Prepare
	access *access
	booted int
}

var _ backend.Backend = (*Backend)(nil)

// New checks the options; it does not connect.
func New(opts Options) (*Backend, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("cluster backend: %w", err)
	}
	b := &Backend{opts: opts}
	b.planes = pool.New(pool.Options[*controlPlane]{
		Fits: func(p *controlPlane, s *scenario.Scenario) bool { return p.shape == s.Topology.CRDs },
		Boot: b.boot, Begin: b.begin, Explain: explain, Idle: 1,
	})
	return b, nil
}

// Name implements backend.Backend.
func (b *Backend) Name() string { return Name }

// Timing implements backend.Backend.
func (b *Backend) Timing() contract.Timing { return timing() }

// Prepare implements backend.Backend.
func (b *Backend) Prepare(ctx context.Context, spec backend.Spec) (backend.Environment, error) {
	if spec.Progress == nil {
		spec.Progress = func(string) {}
	}
	err := b.setUp(ctx)
	if err == nil {
		var e *live.Environment
		if e, err = b.planes.Prepare(ctx, spec); err == nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("cluster backend: prepare scenario %s: %w", spec.Scenario.Name, err)
}

// setUp makes what all runs share.
func (b *Backend) setUp(ctx context.Context) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errors.New("the backend is closed")
	}
	if b.runDir != nil {
		return nil
	}
	if b.access, err = connect(b.opts.Kubeconfig); err != nil {
		return err
	}
	b.runDir, err = process.NewRunDir(ctx)
	return err
}

func (b *Backend) boot(ctx context.Context, s *scenario.Scenario, progress func(string)) (*controlPlane, error) {
	b.mu.Lock()
	b.booted++
	dir, access := filepath.Join(b.runDir.Path, "c"+strconv.Itoa(b.booted)), b.access
	b.mu.Unlock()
	p, err := newControlPlane(access, b.opts, s, dir)
	if err != nil {
		return nil, err
	}
	if err := p.check(ctx); err != nil { // another try would find the same
		return nil, errors.Join(err, p.Close(ctx))
	}
	progress(fmt.Sprintf("deploying run %s to %s", p.run.name, access.config.Host))
	return p, p.boot(ctx, s)
}

func (b *Backend) begin(ctx context.Context, p *controlPlane, spec backend.Spec, release pool.Release) (*live.Environment, error) {
	sut := b.opts.SystemUnderTest
	if sut.AggregatorCommand == "" {
		sut.AggregatorCommand = live.DefaultAggregator
	}
	sut.AggregatorCommand += p.run.aggregatorFlags()
	return live.Begin(ctx, p, spec, live.Options{SystemUnderTest: sut, Release: release})
}

// aggregatorFlags say who should report, and where leases are: in the namespace of the run.
func (r run) aggregatorFlags() string {
	return fmt.Sprintf(" --leader-elect-namespace=%s --pod-namespace=%s --pod-selector=%s=%s --pod-node-label=%s", r.name, r.name, labelPart, partNode, labelNode)
}

// Kept is the environments that were left running, in the order of their release.
func (b *Backend) Kept() []*live.Environment { return b.planes.Kept() }

// Close implements backend.Backend. It also removes environments that were kept.
func (b *Backend) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	dir := b.runDir
	b.runDir = nil
	b.mu.Unlock()
	err := b.planes.Close(ctx)
	if dir != nil {
		err = errors.Join(err, dir.Close())
	}
	return err
}
