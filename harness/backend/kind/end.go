package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// endTimeout bounds the end of containers whose processes have all been sent SIGKILL.
const endTimeout = 2 * time.Minute

// endContainers kills containers and waits until they have ended. The engine itself gives up on one after 10 s, with "did not
// receive an exit event", and a node's hundreds of threads take longer to die on a busy machine: a removal by force then
// fails, and leaves it running.
func endContainers(ctx context.Context, containers ...string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	for _, name := range containers {
		all.Go(func() error {
			_, killing := docker(ctx, "kill", name) // also of one that has ended already
			if _, err := docker(ctx, "wait", name); err != nil {
				return fmt.Errorf("end the container %s: %w", name, errors.Join(err, killing))
			}
			return nil
		})
	}
	return all.Wait()
}

// removeContainer ends a container and removes it with its volumes.
func removeContainer(ctx context.Context, name string) error {
	if err := endContainers(ctx, name); err != nil {
		return err
	}
	_, err := docker(ctx, "rm", "--force", "--volumes", name)
	return err
}

// deleteCluster ends the nodes of a cluster before kind deletes it.
func (p *plane) deleteCluster(ctx context.Context, name, kubeconfig string) error {
	ids, err := docker(ctx, "ps", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+name)
	if err == nil {
		err = endContainers(ctx, strings.Fields(ids)...)
	}
	if deleting := p.provider.Delete(name, kubeconfig); deleting != nil {
		return fmt.Errorf("delete the kind cluster %s: %w", name, errors.Join(deleting, err))
	}
	return nil
}
