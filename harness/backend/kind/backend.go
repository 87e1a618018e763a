package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/kind/image"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/command"
)

// Name of the backend.
const Name = "kind"

// Backend makes kind clusters and keeps them for later scenarios.
type Backend struct {
	*pool.Backend[*controlPlane]
	opts Options

	mu       sync.Mutex // one writes archives
	archives archives
	node     string // image
	// tamper changes what a cluster is booted with, to make a boot fail; only tests set it.
	tamper func(*bootSpec)
}

// idleClusters is kept for the next scenario. The suite runs those of one topology one after another, so that a cluster of
// another is not needed again and would only take processors and memory from those beside it.
const idleClusters = 1

var _ backend.Backend = (*Backend)(nil)

// New checks the options; it starts nothing.
func New(opts Options) (*Backend, error) {
	if err := checkImage(history.RoleReporter, opts.ReporterCommand, opts.ReporterImage, opts.ReporterArgs); err != nil {
		return nil, err
	}
	if err := checkImage(history.RoleOperator, opts.OperatorCommand, opts.OperatorImage, opts.OperatorArgs); err != nil {
		return nil, err
	}
	if !opts.Plugin.IsZero() && opts.Plugin.Image == "" {
		return nil, errors.New("--plugin-command without --plugin-image: expected both, because on kind a plugin under test runs in a container")
	}
	templates := opts.SystemUnderTest
	templates.ReporterCommand += opts.ReporterArgs
	templates.OperatorCommand += opts.OperatorArgs
	if err := templates.Validate(); err != nil {
		return nil, fmt.Errorf("kind backend: %w", err)
	}
	if err := opts.CheckPrograms(contained); err != nil {
		return nil, fmt.Errorf("kind backend: %w", err)
	}
	if _, err := command.Split(opts.PluginArgs); err != nil {
		return nil, fmt.Errorf("kind backend: plugin arguments: %w", err)
	}
	b := &Backend{opts: opts}
	b.Backend = pool.NewBackend(pool.BackendOptions[*controlPlane]{Name: Name, SystemUnderTest: &b.opts.SystemUnderTest, PluginArgs: opts.PluginArgs, SetUp: b.setUp, Pool: pool.Options[*controlPlane]{
		Fits: func(p *controlPlane, s *scenario.Scenario) bool { return p.shape == shapeOf(s) },
		Boot: b.boot, Explain: explain, Idle: idleClusters,
	}})
	return b, nil
}

// checkImage returns an error unless the flags of a role name a command, an image with or without arguments, or nothing.
func checkImage(role, command, image, args string) error {
	if image != "" && command != "" {
		return fmt.Errorf("--%[1]s-image beside --%[1]s-command: expected one of them; an image has its own program and takes --%[1]s-args", role)
	}
	if args != "" && image == "" {
		return fmt.Errorf("--%[1]s-args without --%[1]s-image: expected both, or --%[1]s-command", role)
	}
	return nil
}

// setUp finds the node image, and makes the images of programs.
func (b *Backend) setUp(ctx context.Context, s pool.Shared, progress func(string)) (err error) {
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
	if err := removeStale(ctx, cluster.NewProvider(cluster.ProviderWithDocker()), filepath.Join(s.Dir, "kubeconfig"), progress); err != nil {
		return err
	}
	b.archives, err = makeArchives(ctx, s.Programs, filepath.Join(s.Dir, "images"))
	if err == nil && b.opts.ReporterImage != "" {
		b.opts.ReporterCommand, err = b.archives.takeReporterImage(ctx, b.opts, s.Dir)
	}
	if err == nil && b.opts.OperatorImage != "" {
		b.opts.OperatorCommand, err = b.archives.takeOperatorImage(ctx, b.opts, s.Dir)
	}
	if err == nil && b.opts.Plugin.Image != "" {
		err = b.archives.takePluginImage(ctx, b.opts.Plugin.Image, s.Dir)
	}
	return err
}

func (b *Backend) boot(ctx context.Context, s *scenario.Scenario, progress func(string)) (_ *controlPlane, err error) {
	number, shared := b.Number()
	// The process is in the name, because several may make clusters at the same time.
	name := fmt.Sprintf(namePrefix+"%d-%d", os.Getpid(), number)
	spec := bootSpec{name: name, dir: filepath.Join(shared.Dir, fmt.Sprintf("k%d", number)), nodeImage: b.node, runDir: shared.Dir,
		shape: shapeOf(s), programs: shared.Programs, progress: progress}
	if spec.archives, err = b.archivesFor(ctx, spec.shape, shared.Dir, progress); err != nil {
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
