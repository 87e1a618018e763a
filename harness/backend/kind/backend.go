package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/kind/image"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Name of the backend.
const Name = "kind"

// Backend makes kind clusters and keeps them for later scenarios. Its methods may be called at the same time.
type Backend struct {
	opts Options

	mu       sync.Mutex
	closed   bool
	runDir   *process.RunDir // made by the first Prepare
	programs *live.Programs
	archives archives
	node     string // image
	booted   int
	idle     []*plane
	planes   map[*plane]struct{} // all that live
	kept     []*live.Environment
}

var _ backend.Backend = (*Backend)(nil)

// New checks the options; it starts nothing.
func New(opts Options) (*Backend, error) {
	if opts.ReporterImage != "" && opts.ReporterCommand != "" {
		return nil, errors.New("--reporter-image beside --reporter-command: expected one of them; an image has its own program and takes --reporter-args")
	}
	if opts.ReporterArgs != "" && opts.ReporterImage == "" {
		return nil, errors.New("--reporter-args without --reporter-image: expected both, or --reporter-command")
	}
	if err := (live.SystemUnderTest{ReporterCommand: opts.ReporterCommand + opts.ReporterArgs, AggregatorCommand: opts.AggregatorCommand}).Validate(); err != nil {
		return nil, fmt.Errorf("kind backend: %w", err)
	}
	if _, err := live.SplitWords(opts.PluginArgs); err != nil {
		return nil, fmt.Errorf("kind backend: plugin arguments: %w", err)
	}
	return &Backend{opts: opts, planes: map[*plane]struct{}{}}, nil
}

// Name implements backend.Backend.
func (b *Backend) Name() string { return Name }

// Timing implements backend.Backend.
func (b *Backend) Timing() contract.Timing { return timing() }

// Lacks implements backend.Backend.
func (b *Backend) Lacks(s *scenario.Scenario) []string {
	var lacks []string
	add := func(format string, args ...any) { lacks = append(lacks, fmt.Sprintf(format, args...)) }
	if s.Topology.ControlPlanes > maxNodes {
		add("%d control-plane nodes: each is a container of 400 MB, at most %d were tried", s.Topology.ControlPlanes, maxNodes)
	}
	if s.Topology.Aggregators > replicas {
		add("%d aggregators: the Deployment has %d replicas", s.Topology.Aggregators, replicas)
	}
	for _, k := range live.KeyIDs(s) {
		if !slices.Contains(pluginKeyIDs(), k) {
			add("keyID %s: the API servers' pods have %s", k, strings.Join(pluginKeyIDs(), " and "))
		}
	}
	if err := live.CheckOperator(s.Operator); err != nil {
		add("%v", err)
	}
	for _, a := range s.Actions() {
		lacks = append(lacks, lacking(a)...)
	}
	return lacks
}

// lacking says why an action cannot be done.
func lacking(a scenario.Action) []string {
	switch {
	case a.Verb == scenario.VerbLink && a.Link.From == history.RoleReporter && a.Link.To == history.RoleLoadBalancer:
		return []string{"a link from reporter to load-balancer: reporters use their own node's API server here (connectivity loopback)"}
	case a.Process.Role == history.RoleEtcd && a.Verb != scenario.VerbPause && a.Verb != scenario.VerbResume:
		return []string{"etcd: " + errEtcdOnlyPauses.Error()}
	}
	return nil
}

// Prepare implements backend.Backend.
func (b *Backend) Prepare(ctx context.Context, spec backend.Spec) (backend.Environment, error) {
	e, err := b.prepare(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("kind backend: prepare scenario %s: %w", spec.Scenario.Name, err)
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
	nodes := max(spec.Scenario.Topology.ControlPlanes, 0)
	if nodes == 0 {
		nodes = 3
	}
	if p := b.take(nodes); p != nil {
		e, err := b.begin(ctx, p, spec)
		if err == nil {
			return e, nil
		}
		if closing := b.discard(ctx, p); ctx.Err() != nil || closing != nil {
			return nil, errors.Join(err, closing)
		}
		spec.Progress("the cluster at hand cannot be used again: " + err.Error())
	}
	p, err := b.boot(ctx, nodes, spec.Progress)
	if err != nil {
		return nil, err
	}
	e, err := b.begin(ctx, p, spec)
	if err != nil {
		return nil, errors.Join(err, b.discard(ctx, p))
	}
	return e, nil
}

func (b *Backend) begin(ctx context.Context, p *plane, spec backend.Spec) (*live.Environment, error) {
	if err := p.reset(ctx, spec.Scenario); err != nil {
		return nil, fmt.Errorf("reset: %w", err)
	}
	return live.Begin(ctx, p, spec, live.Options{SystemUnderTest: b.opts.SystemUnderTest, Release: b.release})
}

// setUp makes what all planes share.
func (b *Backend) setUp(ctx context.Context, progress func(string)) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errors.New("the backend is closed")
	}
	if b.runDir != nil {
		return nil
	}
	if err := checkEngine(ctx); err != nil {
		return err
	}
	if b.node = b.opts.NodeImage; b.node == "" {
		var how string
		if b.node, how, err = image.Resolve(ctx); err != nil {
			return err
		}
		progress(fmt.Sprintf("node image %s (%s)", b.node, how))
	}
	dir, err := process.NewRunDir(ctx)
	if err != nil {
		return err
	}
	if err := removeStale(ctx, cluster.NewProvider(cluster.ProviderWithDocker()), filepath.Join(dir.Path, "kubeconfig"), progress); err != nil {
		return errors.Join(err, dir.Close())
	}
	b.programs = live.NewPrograms(dir.Path, progress)
	if b.programs.PluginArgs, err = live.SplitWords(b.opts.PluginArgs); err == nil {
		b.archives, err = makeArchives(ctx, b.programs, filepath.Join(dir.Path, "images"))
	}
	if err == nil && b.opts.ReporterImage != "" {
		b.opts.ReporterCommand, err = b.archives.takeReporterImage(ctx, b.opts, dir.Path)
	}
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	b.runDir = dir
	return nil
}

func (b *Backend) boot(ctx context.Context, nodes int, progress func(string)) (*plane, error) {
	b.mu.Lock()
	b.booted++
	// The process is in the name, because several may make clusters at the same time.
	name := fmt.Sprintf(namePrefix+"%d-%d", os.Getpid(), b.booted)
	s := bootSpec{name: name, dir: filepath.Join(b.runDir.Path, fmt.Sprintf("k%d", b.booted)), nodeImage: b.node, runDir: b.runDir.Path,
		nodes: nodes, programs: b.programs, archives: b.archives, progress: progress}
	b.mu.Unlock()
	progress(fmt.Sprintf("creating the kind cluster %s with %d control-plane nodes", name, nodes))
	p, err := boot(ctx, s)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.planes[p] = struct{}{}
	return p, nil
}

// take gives an idle plane with so many nodes, if there is one.
func (b *Backend) take(nodes int) *plane {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range b.idle {
		if len(p.nodes.Names()) == nodes {
			b.idle = append(b.idle[:i], b.idle[i+1:]...)
			return p
		}
	}
	return nil
}

// release is told by an environment that its scenario is over.
func (b *Backend) release(ctx context.Context, e *live.Environment, keep bool) error {
	p := e.Plane().(*plane)
	if keep {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.kept = append(b.kept, e)
		return nil
	}
	if err := live.Purge(ctx, p); err != nil {
		p.spoil(err.Error())
	}
	if p.spoiled() != "" {
		return b.discard(ctx, p)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, p)
	return nil
}

// Kept is the environments that were left running, in the order of their release.
func (b *Backend) Kept() []*live.Environment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*live.Environment(nil), b.kept...)
}

func (b *Backend) discard(ctx context.Context, p *plane) error {
	b.mu.Lock()
	delete(b.planes, p)
	b.mu.Unlock()
	return p.close(context.WithoutCancel(ctx))
}

// Close implements backend.Backend.
func (b *Backend) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	all := b.planes
	b.planes, b.idle = map[*plane]struct{}{}, nil
	dir := b.runDir
	b.runDir = nil
	b.mu.Unlock()
	var errs []error
	for p := range all {
		errs = append(errs, p.close(context.WithoutCancel(ctx)))
	}
	if dir != nil {
		errs = append(errs, dir.Close())
	}
	return errors.Join(errs...)
}
