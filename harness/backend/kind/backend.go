package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/kind/image"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// Options of the backend. The zero value works: this project's own images, the node image that can be had.
type Options struct {
	undertest.System
	// NodeImage of the clusters; empty: see harness/backend/kind/image.
	NodeImage string
}

const (
	// Tolerance is what a busy machine with 2 cores may add to any bound: three kubelets, controller managers and
	// schedulers are beside what the local backend runs.
	Tolerance = time.Second
	// maxNodes is the most that was tried; 400 MB of memory each.
	maxNodes = 5
	// bootTimeout bounds a boot: 75 s for three nodes, half of that again for a busy machine, and the API servers' restart.
	bootTimeout = 8 * time.Minute
	// encryptionPoll is how often an API server of our own node image looks for a changed encryption configuration; a
	// stock one looks once a minute.
	encryptionPoll = 500 * time.Millisecond
)

// firstKeyID is that of the plugin with which API servers start for the first time.
const firstKeyID = "1"

// resetTimeout bounds making a plane new for a scenario; the longest part is an API server that starts.
const resetTimeout = 2 * time.Minute

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
	if !opts.Plugin.IsZero() && opts.Plugin.Image == "" {
		return nil, undertest.Wrong("plugin.command", "expected with plugin.image, because on kind a plugin under test runs in a container")
	}
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("kind backend: %w", err)
	}
	if err := cluster.CheckPrograms(opts.System, contained); err != nil {
		return nil, fmt.Errorf("kind backend: %w", err)
	}
	b := &Backend{opts: opts}
	b.Backend = pool.NewBackend(pool.BackendOptions[*controlPlane]{Name: Name, System: &b.opts.System, SetUp: b.setUp, Pool: pool.Options[*controlPlane]{
		Fits: func(p *controlPlane, s *scenario.Scenario) bool { return p.shape == shapeOf(s) },
		Boot: b.boot, Explain: explain, Idle: idleClusters,
	}})
	return b, nil
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
	if err := removeStale(ctx, kindcluster.NewProvider(kindcluster.ProviderWithDocker()), filepath.Join(s.Dir, "kubeconfig"), progress); err != nil {
		return err
	}
	b.archives, err = makeArchives(ctx, s.Programs, filepath.Join(s.Dir, "images"))
	if err == nil {
		err = b.archives.takeUnderTest(ctx, &b.opts.System, s.Dir)
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
	progress(fmt.Sprintf("creating the kind cluster %s with %d control-plane nodes", name, spec.shape.Nodes))
	return boot(ctx, spec)
}
