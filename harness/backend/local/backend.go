package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/command"
)

// Name of the backend.
const Name = "local"

// Backend runs control planes on this machine and keeps clean ones for later scenarios. Its methods may be called at the
// same time.
type Backend struct {
	opts   Options
	planes *pool.Pool[*controlPlane]

	mu       sync.Mutex
	closed   bool
	runDir   *process.RunDir // made by the first Prepare
	programs *live.Programs
	binaries *assets.Binaries
	booted   int // planes so far, for their directories
}

var _ backend.Backend = (*Backend)(nil)

// New checks the options; it starts nothing.
func New(opts Options) (*Backend, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("local backend: %w", err)
	}
	b := &Backend{opts: opts}
	b.planes = pool.New(pool.Options[*controlPlane]{
		Fits: func(p *controlPlane, s *scenario.Scenario) bool { return p.shape == shapeOf(s) },
		Boot: b.boot, Begin: b.begin, Explain: explain, Idle: opts.idle(),
	})
	return b, nil
}

// Name implements backend.Backend.
func (b *Backend) Name() string { return Name }

// Timing implements backend.Backend.
func (b *Backend) Timing() contract.Timing { return live.Timing() }

// Unsupported implements backend.Backend. Everything in the scenario language but clocks can be done here; what is listed besides are
// scenarios that ask for more than this machine can hold, or for an operator that does not exist.
func (b *Backend) Unsupported(s *scenario.Scenario) []string {
	var lacks []string
	if s.Topology.ControlPlanes > maxNodes {
		lacks = append(lacks, fmt.Sprintf("%d control-plane nodes: the local backend runs a kube-apiserver for each, at most %d", s.Topology.ControlPlanes, maxNodes))
	}
	if s.Topology.Connectivity == history.ConnectService && os.Geteuid() != 0 {
		lacks = append(lacks, "connectivity service: each reporter has its service account at "+live.ServiceAccountDir+" in a mount namespace of its own, which needs root")
	}
	lacks = append(lacks, live.UnsupportedVerbs(s, false)...)
	lacks = append(lacks, live.UnsupportedAggregated(s)...)
	lacks = append(lacks, live.UnsupportedRefusals(s)...)
	if err := live.CheckOperator(s.Operator); err != nil {
		lacks = append(lacks, err.Error())
	}
	return lacks
}

// maxNodes is the scenario language's own limit; 300 MB of memory each.
const maxNodes = 7

// Prepare implements backend.Backend.
func (b *Backend) Prepare(ctx context.Context, spec backend.Spec) (backend.Environment, error) {
	e, err := b.prepare(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("local backend: prepare scenario %s: %w", spec.Scenario.Name, err)
	}
	return e, nil
}

func (b *Backend) prepare(ctx context.Context, spec backend.Spec) (*live.Environment, error) {
	if spec.Progress == nil {
		spec.Progress = func(string) {}
	}
	if err := b.setUp(ctx, spec.Progress); err != nil {
		return nil, err
	}
	return b.planes.Prepare(ctx, spec)
}

func (b *Backend) begin(ctx context.Context, p *controlPlane, spec backend.Spec, release pool.Release) (*live.Environment, error) {
	return live.Begin(ctx, p, spec, live.Options{System: b.opts.System, Programs: b.programs, Release: release})
}

func (b *Backend) boot(ctx context.Context, s *scenario.Scenario, progress func(string)) (*controlPlane, error) {
	b.mu.Lock()
	b.booted++
	dir, runDir := filepath.Join(b.runDir.Path, fmt.Sprintf("p%d", b.booted)), b.runDir.Path
	b.mu.Unlock()
	shape := shapeOf(s)
	sample, err := sampleFor(ctx, s, progress)
	if err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("booting etcd and %d kube-apiserver (%s)", shape.nodes, b.binaries.Origin))
	p, err := boot(ctx, newProcesses(b.programs, runDir, *b.binaries), shape, live.KeyIDs(s), dir, b.opts.Reporter.MountSockets, sample)
	p.manifest = b.opts.Manifest
	return p, err
}

// setUp makes what all planes share.
func (b *Backend) setUp(ctx context.Context, progress func(string)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errors.New("the backend is closed")
	}
	if b.runDir == nil {
		dir, err := process.NewRunDir(ctx)
		if err != nil {
			return err
		}
		b.runDir, b.programs = dir, live.NewPrograms(dir.Path, progress)
		b.programs.Plugin = b.opts.Plugin
		if b.programs.PluginArgs, err = command.Split(b.opts.FakePlugin.Args); err != nil {
			return err // validated in New
		}
	}
	for _, name := range live.Own(b.opts.System) { // before anything boots
		if _, err := b.programs.Find(ctx, name); err != nil {
			return err
		}
	}
	if b.binaries == nil {
		o := b.opts.Assets
		if o.Progress == nil {
			o.Progress = progress
		}
		binaries, err := assets.Ensure(ctx, o)
		if err != nil {
			return err
		}
		b.binaries = &binaries
	}
	return nil
}

// Kept is the environments that were left running, in the order of their release.
func (b *Backend) Kept() []*live.Environment { return b.planes.Kept() }

// Close implements backend.Backend. It also ends environments that were kept.
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

// Plane names the control plane that a scenario needs.
func Plane(s *scenario.Scenario) string {
	is := shapeOf(s)
	return pool.Describe(is.nodes, is.crds, is.connectivity, is.aggregated, is.keyIDs)
}

func shapeOf(s *scenario.Scenario) Shape {
	n := s.Topology.ControlPlanes
	if n == 0 {
		n = 3
	}
	if aggregated := s.Topology.Aggregated(); len(aggregated) > 0 { // their plugins are not repaired
		return Shape{nodes: n, aggregated: strings.Join(aggregated, ","), keyIDs: strings.Join(live.KeyIDs(s), ","), crds: s.Topology.CRDs, connectivity: s.Topology.Connectivity}
	}
	return Shape{nodes: n, crds: s.Topology.CRDs, connectivity: s.Topology.Connectivity}
}

// sampleFor is the program of the further API servers of a scenario; empty if it has none.
func sampleFor(ctx context.Context, s *scenario.Scenario, progress func(string)) (string, error) {
	if len(s.Topology.Aggregated()) == 0 {
		return "", nil
	}
	programs, err := assets.Obtain(ctx, assets.SampleAPIServer, progress)
	if err != nil {
		return "", err
	}
	return programs.Path(assets.SampleAPIServerProgram), nil
}
