package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Cluster is a kind cluster for others than scenarios, made and wired as a scenario's is. Its history is judged by nobody.
type Cluster struct {
	backend      *Backend
	controlPlane *controlPlane
	env          *live.Environment
	dir          string // that goes with it
	progress     func(string)
}

// BootOptions of a Cluster.
type BootOptions struct {
	Options
	// ControlPlanes is the number of nodes, 1 to MaxControlPlanes.
	ControlPlanes int
	// KeyIDs of the plugins in every API server's pod, the write key first.
	KeyIDs []string
	// Progress receives one line at a time about what takes more than a moment.
	Progress func(string)
}

// MaxControlPlanes is the most that was tried.
const MaxControlPlanes = maxNodes

// Boot makes a cluster. On error nothing of it is left.
func Boot(ctx context.Context, o BootOptions) (_ *Cluster, err error) {
	b, err := New(o.Options)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close(context.WithoutCancel(ctx)))
		}
	}()
	s := scenario.Scenario{Name: "cluster", Topology: scenario.Topology{ControlPlanes: o.ControlPlanes, KeyIDs: o.KeyIDs}}.WithDefaults()
	if lacks := b.Unsupported(s); len(lacks) > 0 {
		return nil, errors.New(lacks[0])
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	shared, err := b.Shared(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(shared.Dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		return nil, err
	}
	log := history.NewLog(nil)
	prepared, err := b.Prepare(ctx, backend.Spec{Scenario: s, Log: log, OutDir: out, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	e := prepared.(*live.Environment)
	heading := e.RunMetadata()
	log.Record(time.Now(), "boot", &heading)
	return &Cluster{backend: b, controlPlane: e.ControlPlane().Network.(*controlPlane), env: e, dir: shared.Dir, progress: o.Progress}, nil
}

// Environment carries out actions on the cluster, such as faults.
func (c *Cluster) Environment() *live.Environment { return c.env }

// Kubeconfig is that of a user, with a certificate of its own, through the load balancer.
func (c *Cluster) Kubeconfig(user string, groups []string) ([]byte, error) {
	return c.controlPlane.Kubeconfig(user, groups, c.controlPlane.ClientServer())
}

// RESTConfig is an administrator's.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	return c.controlPlane.AdminConfig(c.controlPlane.ClientServer())
}

// Ready returns when every API server is, and every node can run pods.
func (c *Cluster) Ready(ctx context.Context) error {
	if err := cluster.EachNode(ctx, c.controlPlane.nodes.List(), func(ctx context.Context, n *cluster.Node) error { return n.Server.Ready(ctx) }); err != nil {
		return err
	}
	client, err := c.controlPlane.objectsThrough(c.controlPlane.ClientServer())
	if err != nil {
		return err
	}
	all := conditions.New(client).ResourceListMatchN(&corev1.NodeList{}, len(c.controlPlane.nodes.List()), nodeReady)
	return wait.For(all, wait.WithContext(ctx), wait.WithTimeout(kubeletsTimeout), wait.WithInterval(10*readyPoll), wait.WithImmediate())
}

// kubeletsTimeout bounds the wait for kubelets, whose API servers are ready.
const kubeletsTimeout = 5 * time.Minute

func nodeReady(o k8s.Object) bool {
	n, _ := o.(*corev1.Node)
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// LoadArchive imports an archive of images into every node.
func (c *Cluster) LoadArchive(ctx context.Context, file string) error {
	return cluster.EachNode(ctx, c.controlPlane.nodes.List(), func(ctx context.Context, n *cluster.Node) error {
		return c.controlPlane.container(n.Name).importArchive(ctx, file)
	})
}

// LoadImage imports an image that the engine has into every node.
func (c *Cluster) LoadImage(ctx context.Context, image string) error {
	file := filepath.Join(c.dir, "image.tar")
	defer os.Remove(file) // what is left goes with the folder
	if _, err := docker.Run(ctx, "save", "--output", file, image); err != nil {
		return err
	}
	return c.LoadArchive(ctx, file)
}

// ExportLogs writes kind's export, static pods, kubeadm configurations, and the objects that reporters and aggregator write, into a folder, which
// exists.
func (c *Cluster) ExportLogs(ctx context.Context, dir string) error {
	return c.env.Collect(ctx, dir, c.progress)
}

// endRecording bounds the wait for recorders whose history nobody will read.
const endRecording = 10 * time.Second

// Close deletes the cluster.
func (c *Cluster) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	ending, cancel := context.WithTimeout(ctx, endRecording)
	defer cancel()
	_ = c.env.Release(ending, true) // what its history lacks, nobody misses
	return c.backend.Close(ctx)
}
