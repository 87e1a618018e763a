package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	lifecycle "github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// installer stands between this project's operator and pods that are replaced, as OpenShift's installer does: what the operator asks of a node is the
// next revision of its pod, and one node after another gets it. What is asked for within a moment is one revision.
type installer struct {
	inPlace
	roller    Roller
	log       *slog.Logger
	revisions *podRevisions
}

var _ lifecycle.Executor = (*installer)(nil)

// rollPoll is how often the installer looks for something to do.
const rollPoll = 250 * time.Millisecond

// withInstaller lets an installer handle the pods of a control plane that replaces them.
func (p *pods) withInstaller() error {
	roller, ok := p.e.controlPlane.(Roller)
	if !ok {
		return nil
	}
	log, err := os.OpenFile(p.logFile()+".installer", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of the installer: %w", err)
	}
	p.installer = &installer{inPlace: inPlace{p}, roller: roller, log: slog.New(slog.NewTextHandler(log, nil)), revisions: newPodRevisions()}
	p.installer.revisions.given = p.e.opts.WholeOperator()
	p.work.Go(func() {
		defer log.Close()
		p.installer.run(p.ctx)
	})
	return nil
}

// executor is what the operator acts through.
func (p *pods) executor() lifecycle.Executor {
	if p.installer != nil {
		return p.installer
	}
	return inPlace{p}
}

// want changes what is wanted of a node's pod.
func (i *installer) want(name, what string, change func(*content)) error {
	n := i.e.controlPlane.Nodes().Get(name)
	if n == nil {
		return fmt.Errorf("%s: there is no node %q: there are %v", what, name, i.e.Nodes())
	}
	if err := errors.Join(i.e.operated.present(n), i.same(name)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	i.revisions.change(name, time.Now(), change)
	return nil
}

// StartPlugins implements operator.Executor.
func (i *installer) StartPlugins(_ context.Context, name string, plugins []revision.Plugin) error {
	return i.want(name, "start plugins", func(c *content) {
		for _, g := range plugins {
			c.plugins = append(slices.DeleteFunc(c.plugins, func(old revision.Plugin) bool { return old.KeyID == g.KeyID }), g)
		}
		c.sort()
	})
}

// StopPlugins implements operator.Executor.
func (i *installer) StopPlugins(_ context.Context, name string, ids []uint64) error {
	return i.want(name, "stop plugins", func(c *content) {
		c.plugins = slices.DeleteFunc(c.plugins, func(g revision.Plugin) bool { return slices.Contains(ids, g.KeyID) })
	})
}

// Report implements operator.Executor.
func (i *installer) Report(_ context.Context, name string, ids []uint64) error {
	return i.want(name, "start the reporter anew", func(c *content) { c.sockets = slices.Clone(ids) })
}

// RollOut implements operator.Executor.
func (i *installer) RollOut(_ context.Context, name string, rev int, file []byte) error {
	if i.underway(name, rev) {
		return nil
	}
	return i.want(name, "roll out", func(c *content) { c.config, c.file = rev, file })
}

// Nodes implements operator.Executor. What is wanted of a pod counts as there, but for plugins that cannot run and for new settings of a plugin that runs:
// the operator waits for what its plugins report, and until the pod is complete whose API server has loaded a configuration.
func (i *installer) Nodes(ctx context.Context) (map[string]core.Node, error) {
	nodes, err := i.inPlace.Nodes(ctx)
	for name, n := range nodes {
		n.Plugins, n.Waiting = i.revisions.plugins(name)
		n.Reporter = i.revisions.of(name).sockets
		n.Loaded = i.revisions.loaded(name, n.Loaded)
		nodes[name] = n
	}
	return nodes, err
}

func (i *installer) run(ctx context.Context) {
	ticker := time.NewTicker(rollPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, name := range i.revisions.due(time.Now()) {
			if err := i.install(ctx, name); err != nil {
				i.log.Error("install", "node", name, "error", err)
			}
		}
	}
}

// install replaces the pod of a node. It is not given up when the environment ends: a pod that is half made cannot be used again.
func (i *installer) install(ctx context.Context, name string) error {
	return i.on(name, "replace the pod", func(n *Node) error {
		want, number := i.revisions.next(name)
		return i.roll(ctx, n, want, number)
	})
}

// roll replaces the pod of a node by one of a revision.
func (i *installer) roll(ctx context.Context, n *Node, want content, number int) error {
	ctx = context.WithoutCancel(ctx)
	i.log.Info("install", "node", n.Name, "revision", number, "plugins", len(want.plugins), "configuration", want.config)
	r := PodRevision{Number: number, Images: map[string]string{}, Change: func(context.Context) error { return i.change(n, want) }, Ready: i.e.changes.recordReady}
	named := operated.NamedImages(i.e.scenario)
	for _, g := range want.plugins {
		called := revision.SocketName(g.KeyID)
		if err := i.introduce(ctx, n.Name, called, g.Config); err != nil {
			return err
		}
		r.Plugins = append(r.Plugins, called)
		if slices.Contains(named, g.Config.Image) {
			r.Images[called] = g.Config.Image
		}
	}
	i.e.procs.recordStopping(Target{n.Server, n.identity()})
	pod, err := i.roller.Roll(ctx, n, r)
	if err != nil {
		return err
	}
	for _, w := range pod.Waiting {
		i.e.record(&history.Container{Node: n.Name, Namespace: pod.Namespace, Pod: pod.Name, Name: w.Name, State: history.ContainerWaiting, Revision: number, Detail: w.Reason})
	}
	if waiting := want.waiting(pod); len(waiting) > 0 {
		i.log.Info("plugins cannot start", "node", n.Name, "revision", number, "waiting", waiting)
		i.revisions.installed(n.Name, want, waiting)
		return nil
	}
	i.e.record(&history.Container{Node: n.Name, Namespace: pod.Namespace, Pod: pod.Name, State: history.PodRevised, Revision: number, Detail: pod.describe()})
	i.revisions.installed(n.Name, want, nil)
	return i.e.procs.start(ctx, n.Reporter())
}

// change notes what the pod of a node has from now on, and gives its API server its file.
func (i *installer) change(n *Node, c content) error {
	i.pods.mu.Lock()
	pod := i.of(n.Name)
	pod.plugins, pod.sockets = c.configs(), slices.Clone(c.sockets)
	i.pods.mu.Unlock()
	i.toldSockets(n.Name)
	for _, g := range n.Plugins() {
		if err := i.e.recorder.followPlugin(g, tail.FromStart); err != nil {
			return err
		}
	}
	if c.file == nil {
		return nil
	}
	return i.send(n, c.config, c.file)
}

// Roller is a control plane that replaces an API server's pod for every revision of what is in it. On others plugins, reporters and configurations
// change in a pod that stays.
type Roller interface {
	// Roll replaces the pod of a node, and returns when its API server and its plugins run, or when the kubelet says that one of them cannot. The
	// reporter, if there is one, waits to be started.
	Roll(ctx context.Context, n *Node, r PodRevision) (Pod, error)
}

// PodRevision is what a pod is made of.
type PodRevision struct {
	Number int
	// Plugins are the names of their sockets. A pod without plugins has no reporter.
	Plugins []string
	// Images are those of plugins for which the operator chose one, as it writes them, by the names of their sockets. The others run from this
	// project's image.
	Images map[string]string
	// Change changes files of the pod while it is down.
	Change func(ctx context.Context) error
	// Ready is told of every process that answers again.
	Ready func(*Target)
}

// Pod is one that was made.
type Pod struct {
	Namespace, Name string
	Containers      []string // beside that of the API server
	// Waiting are containers of plugins that cannot run. The API server does not run, either.
	Waiting []WaitingContainer
}

// WaitingContainer is a container that does not run.
type WaitingContainer struct {
	Name   string
	Plugin string // the name of its socket
	// Reason in the kubelet's words: "ImagePullBackOff: …".
	Reason string
}

func (p Pod) describe() string {
	if len(p.Containers) == 0 {
		return "no sidecars"
	}
	return "with " + strings.Join(p.Containers, ", ")
}
