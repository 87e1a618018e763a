package operand

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
)

// Pods is what a backend can do to the API server's pods. Its methods may be called again after an error.
type Pods interface {
	// Nodes are those that are expected to have a pod.
	Nodes(ctx context.Context) (map[string]Node, error)
	// Install gives the pod of a node what a revision has: its plugins before its API server, its API server before its reporter. What the pod loses goes
	// in the opposite order. The error is ErrUnfinished while other nodes need not wait for this one.
	Install(ctx context.Context, node string, r Revision) error
	// Check starts a plugin on its own, runs the program of a pre-flight pod, and stops the plugin. It returns how the program ended, with why there
	// is no result in case that the pod has none.
	Check(ctx context.Context, pod *corev1.Pod, p config.Plugin) corev1.ContainerStateTerminated
	// Migrates reports whether the objects of a resource are in this API server, and Migrate writes all of them anew, through the API.
	Migrates(resource schema.GroupVersionResource) bool
	Migrate(ctx context.Context, resource schema.GroupVersionResource) error
	// Migrated is called when the operator says that every object lies under its newest key, and each time that it says so again after it did not.
	Migrated(ctx context.Context) error
	// Anew reports whether a pod is replaced for a revision, with everything that the revision has, and shown in the API by its kubelet.
	Anew() bool
}

// ErrUnfinished is for a pod that does not have all of a revision yet, without anything being wrong.
var ErrUnfinished = errors.New("the API server has not loaded it yet")

// Node is the pod of a node.
type Node struct {
	// Up: its API server answers. Unavailable: nothing can be done on the node.
	Up, Unavailable bool
	// Plugins that run, by keyID, and why others cannot.
	Plugins []uint64
	Waiting map[uint64]string
}

// Revision of the pods. Configuration is zero if it has no encryption configuration.
type Revision struct {
	Number int
	operator.Configuration
}

// Options of a Cluster. All are required, but CA only with Whole.
type Options struct {
	operator.APIServer
	// Own: the operator is this project's. Its own revisions are in what is observed.
	Own bool
	// Whole: the operator makes revisions and installs them by pods of its own. What is in the nodes' pods follows.
	Whole bool
	// Surge: pods are shown as those of a Deployment, of which the next is ready while the one before serves on.
	Surge bool
	// CA is the certificate of the cluster's authority, in PEM.
	CA      []byte
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Pods    Pods
	Clock   clock.WithTicker
	// Observed is called before every round of the installer.
	Observed func(*history.Decision)
	Log      *slog.Logger
}

// pollEvery is how often the nodes are inspected. What the operator writes is seen at once.
const pollEvery = 500 * time.Millisecond

// requestTimeout bounds the requests of one round. A migration and a check take longer and have bounds of their own.
const requestTimeout = 10 * time.Second

// Cluster is installer, migrator and pre-flight check, which run at the same time.
type Cluster struct {
	Installer *Installer
	parts     []*part
	sources   *sources
	options   Options
}

// part takes a step whenever something has changed, and every pollEvery.
type part struct {
	name    string
	step    func(context.Context) error
	changed chan struct{}
}

// New prepares a cluster; nothing is contacted before Run.
func New(o Options) *Cluster {
	c := &Cluster{options: o}
	c.sources = newSources(o, c.notify)
	c.Installer = newInstaller(o, c.sources)
	for name, step := range map[string]func(context.Context) error{"installer": c.Installer.step, "migrator": (&migrator{o, c.sources}).step, "pre-flight": (&preflightPods{o, c.sources}).step} {
		c.parts = append(c.parts, &part{name, step, make(chan struct{}, 1)})
	}
	return c
}

func (c *Cluster) notify() {
	for _, p := range c.parts {
		select {
		case p.changed <- struct{}{}:
		default: // a step is due already
		}
	}
}

// Run works until ctx ends, and returns when nothing of it runs any more.
func (c *Cluster) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, s := range c.sources.all() {
		all.Go(func() { s.Run(ctx) })
	}
	for _, s := range c.sources.all() {
		if s.WaitSynced(ctx) != nil {
			return
		}
	}
	for _, p := range c.parts {
		all.Go(func() { c.loop(ctx, p) })
	}
}

// loop takes steps. What fails is logged and tried again: an API server may be down.
func (c *Cluster) loop(ctx context.Context, p *part) {
	ticker := c.options.Clock.NewTicker(pollEvery)
	defer ticker.Stop()
	last := ""
	for {
		text := ""
		if err := p.step(ctx); err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		if text != "" && text != last {
			c.options.Log.Warn("a step failed and is tried again", "part", p.name, "error", text)
		}
		last = text
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-ticker.C():
		}
	}
}
