package operand

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator"
)

// Pods is what a backend can do to the API server's pods. Its methods may be called again after an error.
type Pods interface {
	operator.Executor
	// Migrate writes every object of a resource anew, through the API.
	Migrate(ctx context.Context, resource schema.GroupVersionResource) error
	// Migrated is called when the operator says that every object lies under its newest key, and each time that it says so again after it did not.
	Migrated(ctx context.Context) error
	// Anew reports whether a pod is replaced for a revision, with everything that the revision has, and shown in the API by its kubelet.
	Anew() bool
}

// Options of a Cluster. All are required, but CA only with Whole.
type Options struct {
	// Whole: the operator makes revisions and installs them by pods of its own. What is in the nodes' pods follows.
	Whole bool
	// CA is the certificate of the cluster's authority, in PEM.
	CA      []byte
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Pods    Pods
	Clock   clock.WithTicker
	// Observed is called after every round of the installer.
	Observed func(*history.Decision)
	Log      *slog.Logger
}

// pollEvery is how often the objects of the operator are read.
const pollEvery = 500 * time.Millisecond

// requestTimeout bounds the requests of one round. A migration and a check take longer and have bounds of their own.
const requestTimeout = 10 * time.Second

// Cluster is installer, migrator and pre-flight check, which run at the same time.
type Cluster struct {
	Installer *Installer
	migrator  *migrator
	preflight *preflightPods
	options   Options
}

// New prepares a cluster; nothing is contacted before Run.
func New(o Options) *Cluster {
	return &Cluster{Installer: newInstaller(o), migrator: &migrator{Options: o}, preflight: &preflightPods{Options: o}, options: o}
}

// Run works until ctx ends, and returns when nothing of it runs any more.
func (c *Cluster) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for name, step := range map[string]func(context.Context) error{"installer": c.Installer.step, "migrator": c.migrator.step, "pre-flight": c.preflight.step} {
		all.Go(func() { c.loop(ctx, name, step) })
	}
}

// loop takes a step every pollEvery. What fails is logged and tried again: an API server may be down.
func (c *Cluster) loop(ctx context.Context, name string, step func(context.Context) error) {
	ticker := c.options.Clock.NewTicker(pollEvery)
	defer ticker.Stop()
	last := ""
	for {
		text := ""
		if err := step(ctx); err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		if text != "" && text != last {
			c.options.Log.Warn("a step failed and is tried again", "part", name, "error", text)
		}
		last = text
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}
