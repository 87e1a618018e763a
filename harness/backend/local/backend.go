package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// Options of the backend. The zero value works: this project's own reporter and aggregator, and binaries of the
// control plane from wherever harness/assets finds them.
type Options struct {
	undertest.System
	// Manifest may change a manifest before it is installed: a cluster that is set up wrongly shows what a run makes of it.
	Manifest func(*unstructured.Unstructured)
	// Assets says where etcd and kube-apiserver come from.
	Assets assets.Options
	// Idle is how many control planes are kept for later scenarios while none uses them; 0 means DefaultIdle. Each
	// costs about 300 MB per API server.
	Idle int
}

// DefaultIdle keeps the plane that was used last. One of three API servers that nobody uses still takes a tenth of two processors.
const DefaultIdle = 1

func (o Options) validate() error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Reporter.MountSockets && os.Geteuid() != 0 {
		return undertest.Wrong("reporter.mountSockets", "a mount namespace for each reporter needs root: run as root, or let the reporter take its sockets from {sockets}")
	}
	return cluster.CheckPrograms(o.System, cluster.Findable)
}

const (
	// Tolerance is what a busy machine with 2 cores may add to any bound: some ten processes share them, and one
	// API server start (2 s of CPU) beside a running scenario delays everybody else by a few hundred milliseconds.
	Tolerance = 500 * time.Millisecond

	// bootTimeout bounds a boot, which takes 3 to 10 s; first starts from a cold disk take longer.
	bootTimeout = 2 * time.Minute
	// encryptionPoll is how often API servers look for a changed encryption configuration, where the binary can be told.
	encryptionPoll = 500 * time.Millisecond
	// reloadGrace is for an API server that is not starved to load a configuration between two scenarios: two looks, and a call of each plugin.
	// Where it is not enough, it is started anew.
	reloadGrace = 3 * time.Second
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
		Fits: func(p *controlPlane, s *scenario.Scenario) bool { return p.shape == pool.ShapeOf(s) },
		Boot: b.boot, Explain: explain, Idle: cmp.Or(opts.Idle, DefaultIdle),
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
		lacks = append(lacks, "connectivity service: each reporter has its service account at "+cluster.ServiceAccountDir+" in a mount namespace of its own, which needs root")
	}
	return append(lacks, live.UnsupportedReal(s)...)
}

// maxNodes is the scenario language's own limit; 300 MB of memory each.
const maxNodes = 7

// boot makes a control plane for a scenario. One that no reset makes good is marked at once, so that it serves no other scenario.
func (b *Backend) boot(ctx context.Context, s *scenario.Scenario, progress func(string)) (*controlPlane, error) {
	number, shared := b.Number()
	shape := pool.ShapeOf(s)
	sample, err := sampleFor(ctx, s, progress)
	if err != nil {
		return nil, err
	}
	releases, err := assets.KubeAPIServers(ctx, b.binaries, s.Kubernetes(), progress)
	if err != nil {
		return nil, err
	}
	if err := shared.Programs.FindPrevious(ctx, s); err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("booting etcd and %d kube-apiserver (%s)", shape.Nodes, b.binaries.Origin))
	on := &processes{Host: cluster.NewHost(shared.Programs, shared.Dir), binaries: b.binaries, releases: releases, manifest: b.opts.Manifest}
	p, err := boot(ctx, on, shape, live.KeyIDs(s), filepath.Join(shared.Dir, fmt.Sprintf("p%d", number)), b.opts.Reporter.MountSockets, sample)
	switch {
	case len(shared.Programs.PluginArgs) > 0:
		p.MarkDirty("its plugins were started with arguments of their own")
	case !shared.Programs.Plugin.IsZero():
		p.MarkDirty("its plugins are not this project's, and no reset is known for them")
	}
	return p, err
}

// setUp finds the programs that are used, before anything boots.
func (b *Backend) setUp(ctx context.Context, s pool.Shared, progress func(string)) (err error) {
	for _, name := range cluster.Own(b.opts.System) {
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

// Plane names the control plane that a scenario needs. One with aggregated API servers has the plugins that it was booted with.
func Plane(s *scenario.Scenario) string { return pool.ShapeOf(s).String() }

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
