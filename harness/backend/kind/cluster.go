package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Cluster is a kind cluster for others than scenarios, made and wired as a scenario's is.
type Cluster struct {
	backend      *Backend
	controlPlane *controlPlane
	env          *live.Environment // nil: the cluster is plain
}

// BootOptions of a Cluster.
type BootOptions struct {
	Options
	// ControlPlanes is the number of nodes, 1 to MaxControlPlanes.
	ControlPlanes int
	// KeyIDs of the plugins in every API server's pod, the write key first, with reporters beside them and an aggregator that
	// runs. Empty: the cluster is plain, with nothing of this project in it, and encrypts nothing.
	KeyIDs []string
	// Logs is a folder for the logs of what runs with KeyIDs; it exists.
	Logs string
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
	b.plain = len(o.KeyIDs) == 0
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
	if b.plain {
		return b.bootPlain(ctx, s, o.Progress)
	}
	return b.bootHealth(ctx, s, o)
}

// bootHealth makes a cluster with all that a scenario finds. Its history is judged by nobody.
func (b *Backend) bootHealth(ctx context.Context, s *scenario.Scenario, o BootOptions) (*Cluster, error) {
	log := history.NewLog(nil)
	e, err := b.prepare(ctx, backend.Spec{Scenario: s, Log: log, OutDir: o.Logs, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	heading := e.RunMetadata()
	log.Record(time.Now(), "boot", &heading)
	return &Cluster{backend: b, controlPlane: e.ControlPlane().(*controlPlane), env: e}, nil
}

// bootPlain makes a cluster that the backend's pool does not know, because no scenario can run on it.
func (b *Backend) bootPlain(ctx context.Context, s *scenario.Scenario, progress func(string)) (*Cluster, error) {
	if err := b.setUp(ctx, progress); err != nil {
		return nil, err
	}
	p, err := b.boot(ctx, s, progress)
	if err != nil {
		if p != nil {
			err = errors.Join(err, p.Close(context.WithoutCancel(ctx)))
		}
		return nil, err
	}
	return &Cluster{backend: b, controlPlane: p}, nil
}

// Environment carries out actions on what runs with KeyIDs, such as faults; nil if the cluster is plain.
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
	if err := eachNode(ctx, c.controlPlane.nodes.List(), func(ctx context.Context, n *live.Node) error { return n.Server.Ready(ctx) }); err != nil {
		return err
	}
	client, err := typed(c.controlPlane.Authority, c.controlPlane.ClientServer())
	if err != nil {
		return err
	}
	return until(ctx, 10*readyPoll, "wait for the nodes", func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		return allReady(nodes.Items)
	})
}

// allReady names the nodes that are not.
func allReady(nodes []corev1.Node) error {
	if len(nodes) == 0 {
		return errors.New("no node has registered")
	}
	var not []string
	for _, n := range nodes {
		ready := func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		if !slices.ContainsFunc(n.Status.Conditions, ready) {
			not = append(not, n.Name)
		}
	}
	if len(not) > 0 {
		return fmt.Errorf("not ready: %s", strings.Join(not, ", "))
	}
	return nil
}

// LoadImages imports archives of images into every node.
func (c *Cluster) LoadImages(ctx context.Context, archives ...string) error {
	return eachNode(ctx, c.controlPlane.nodes.List(), func(ctx context.Context, n *live.Node) error {
		for _, file := range archives {
			if err := c.controlPlane.container(n.Name).importArchive(ctx, file); err != nil {
				return err
			}
		}
		return nil
	})
}

// SaveImage writes an image that the engine has to a file that LoadImages takes.
func SaveImage(ctx context.Context, image, file string) error {
	_, err := docker(ctx, "save", "--output", file, image)
	return err
}

// Collect writes what a person may want to see of the cluster into a folder, which exists.
func (c *Cluster) Collect(ctx context.Context, dir string, progress func(string)) error {
	if c.env != nil {
		return c.env.Collect(ctx, dir, progress)
	}
	return c.controlPlane.Collect(ctx, dir, progress)
}

// endRecording bounds the wait for recorders whose history nobody will read.
const endRecording = 10 * time.Second

// Close deletes the cluster.
func (c *Cluster) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if c.env != nil {
		ending, cancel := context.WithTimeout(ctx, endRecording)
		_ = c.env.Release(ending, true) // what its history lacks, nobody misses
		cancel()
		return c.backend.Close(ctx)
	}
	err := c.controlPlane.Close(ctx)
	return errors.Join(err, c.backend.Close(ctx))
}
