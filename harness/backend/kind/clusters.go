package kind

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"
)

// kindClusters are the cluster that kind made, and for each node that was added another one of a single node, which kind does not set up: so the
// node has whatever kind gives to nodes on this machine. They are safe for concurrent use.
type kindClusters struct {
	name      string // of the first
	provider  *cluster.Provider
	nodeImage string
	layout    layout

	mu    sync.Mutex
	later []string // those that joined
}

// names are those of all.
func (c *kindClusters) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{c.name}, c.later...)
}

// join makes the container of one more node, which kubeadm is to join at an endpoint.
func (c *kindClusters) join(ctx context.Context, node string, endpoint container) (container, error) {
	c.mu.Lock()
	own := fmt.Sprintf("%s-%d", c.name, len(c.later)+1)
	c.later = append(c.later, own)
	c.mu.Unlock()
	quiet := cluster.NewProvider(cluster.ProviderWithDocker()) // its progress is that of a scenario's step
	err := createCluster(quiet, own, c.nodeImage, filepath.Join(c.layout.dir, "kubeconfig-"+own), config(own, c.layout, []string{node}, joining(endpoint)),
		cluster.CreateWithStopBeforeSettingUpKubernetes(true))
	made := controlPlanes(own, 1)[0]
	if err != nil {
		err = fmt.Errorf("%w; the last that the node said: %s", err, made.lastOutput(context.WithoutCancel(ctx)))
	}
	return made, err
}

// delete ends them all.
func (c *kindClusters) delete(ctx context.Context) error {
	var errs []error
	for _, name := range c.names() {
		errs = append(errs, deleteCluster(ctx, c.provider, name, filepath.Join(c.layout.dir, "kubeconfig")))
	}
	return errors.Join(errs...)
}

// export writes the logs of every node to a directory, as kind does.
func (c *kindClusters) export(ctx context.Context, dir string, progress func(string)) error {
	var errs []error
	began := time.Now()
	for _, name := range c.names() {
		err := ctx.Err() // kind writes what it can of every node, and cannot be interrupted
		if err == nil {
			err = c.provider.CollectLogs(name, dir)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("export the logs of %s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	progress(fmt.Sprintf("kind exported its logs in %v", time.Since(began).Round(100*time.Millisecond)))
	return errors.Join(errs...)
}
