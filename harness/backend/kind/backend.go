package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/kind/image"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
)

// Name of the backend.
const Name = "kind"

// Backend makes kind clusters and keeps them for later scenarios. Its methods may be called at the same time.
type Backend struct {
	opts   Options
	planes *pool.Pool[*controlPlane]

	mu       sync.Mutex
	closed   bool
	runDir   *process.RunDir // made by the first Prepare
	programs *live.Programs
	archives archives
	node     string // image
	booted   int
	// tamper changes what a cluster is booted with, to make a boot fail; only tests set it.
	tamper func(*bootSpec)
}

// idleClusters is kept for the next scenario. The suite runs those of one topology one after another, so that a cluster of
// another is not needed again and would only take processors and memory from those beside it.
const idleClusters = 1

var _ backend.Backend = (*Backend)(nil)

// New checks the options; it starts nothing.
func New(opts Options) (*Backend, error) {
	if !opts.Plugin.IsZero() && opts.Plugin.Image == "" {
		return nil, undertest.Wrong("plugin.command", "expected with plugin.image, because on kind a plugin under test runs in a container")
	}
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("kind backend: %w", err)
	}
	if err := live.CheckPrograms(opts.System, contained); err != nil {
		return nil, fmt.Errorf("kind backend: %w", err)
	}
	b := &Backend{opts: opts}
	b.planes = pool.New(pool.Options[*controlPlane]{
		Fits: func(p *controlPlane, s *scenario.Scenario) bool { return p.shape == shapeOf(s) },
		Boot: b.boot, Begin: b.begin, Explain: explain, Idle: idleClusters,
	})
	return b, nil
}

// Name implements backend.Backend.
func (b *Backend) Name() string { return Name }

// Timing implements backend.Backend. It is that of the local backend: what is slower here, starting API servers, is in no bound.
func (b *Backend) Timing() contract.Timing { return live.Timing() }

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
	return b.planes.Prepare(ctx, spec)
}

func (b *Backend) begin(ctx context.Context, p *controlPlane, spec backend.Spec, release pool.Release) (*live.Environment, error) {
	return live.Begin(ctx, p, spec, live.Options{System: b.opts.System, Programs: b.programs, Release: release})
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
	b.programs.Plugin = b.opts.Plugin
	if b.programs.PluginArgs, err = command.Split(b.opts.FakePlugin.Args); err == nil {
		b.archives, err = makeArchives(ctx, b.programs, filepath.Join(dir.Path, "images"))
	}
	if err == nil && b.opts.Reporter.Image != "" {
		b.opts.Reporter.Command, err = b.archives.takeReporterImage(ctx, b.opts, dir.Path)
	}
	if err == nil && b.opts.Operator.Image != "" {
		b.opts.Operator.Command, err = b.archives.takeOperatorImage(ctx, b.opts, dir.Path)
	}
	if err == nil && b.opts.Plugin.Image != "" {
		err = b.archives.takePluginImage(ctx, b.opts.Plugin.Image, dir.Path)
	}
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	b.runDir = dir
	return nil
}

func (b *Backend) boot(ctx context.Context, s *scenario.Scenario, progress func(string)) (_ *controlPlane, err error) {
	b.mu.Lock()
	b.booted++
	// The process is in the name, because several may make clusters at the same time.
	name := fmt.Sprintf(namePrefix+"%d-%d", os.Getpid(), b.booted)
	spec := bootSpec{name: name, dir: filepath.Join(b.runDir.Path, fmt.Sprintf("k%d", b.booted)), nodeImage: b.node, runDir: b.runDir.Path,
		shape: shapeOf(s), programs: b.programs, progress: progress}
	b.mu.Unlock()
	if spec.archives, err = b.archivesFor(ctx, spec.shape, progress); err != nil {
		return nil, err
	}
	if b.tamper != nil {
		b.tamper(&spec)
	}
	// Two cores are busy with one boot, and two at the same time take longer than one after the other.
	done, err := process.TakeTurn(ctx, "kind-boot", func() { progress("waiting until another harness has made its cluster") })
	if err != nil {
		return nil, err
	}
	defer done()
	progress(fmt.Sprintf("creating the kind cluster %s with %d control-plane nodes", name, spec.shape.nodes))
	return boot(ctx, spec)
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
