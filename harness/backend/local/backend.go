package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

const Name = "local"

// Backend runs control planes on this machine and keeps clean ones for later scenarios.
type Backend struct {
	*pool.Backend[*controlPlane]
	opts     Options
	binaries assets.Binaries
}

var _ backend.Backend = (*Backend)(nil)

func New(opts Options) (*Backend, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("local backend: %w", err)
	}
	b := &Backend{opts: opts}
	b.Backend = pool.NewBackend(pool.BackendOptions[*controlPlane]{Name: Name, System: &b.opts.System, SetUp: b.setUp, Pool: pool.Options[*controlPlane]{
		Fits: func(p *controlPlane, s *scenario.Scenario) bool { return p.shape == shapeOf(s) },
		Boot: b.boot, Explain: explain, Idle: opts.idle(),
	}})
	return b, nil
}

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

func (b *Backend) boot(ctx context.Context, s *scenario.Scenario, progress func(string)) (*controlPlane, error) {
	number, shared := b.Number()
	shape := shapeOf(s)
	sample, err := sampleFor(ctx, s, progress)
	if err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("booting etcd and %d kube-apiserver (%s)", shape.nodes, b.binaries.Origin))
	p, err := boot(ctx, newProcesses(shared.Programs, shared.Dir, b.binaries), shape, live.KeyIDs(s), filepath.Join(shared.Dir, fmt.Sprintf("p%d", number)), b.opts.Reporter.MountSockets, sample)
	p.manifest = b.opts.Manifest
	return p, err
}

// setUp finds the programs that are used, before anything boots.
func (b *Backend) setUp(ctx context.Context, s pool.Shared, progress func(string)) (err error) {
	for _, name := range live.Own(b.opts.System) {
		if _, err := s.Programs.Find(ctx, name); err != nil {
			return err
		}
	}
	o := b.opts.Assets
	if o.Progress == nil {
		o.Progress = progress
	}
	b.binaries, err = assets.Ensure(ctx, o)
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
	is := Shape{nodes: n, crds: s.Topology.CRDs, connectivity: s.Topology.Connectivity, Advertises: s.Topology.Advertises(), FailsOver: s.Topology.FailsOver()}
	if aggregated := s.Topology.Aggregated(); len(aggregated) > 0 { // their plugins are not repaired
		is.aggregated, is.keyIDs = strings.Join(aggregated, ","), strings.Join(live.KeyIDs(s), ",")
	}
	return is
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
