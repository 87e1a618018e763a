package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster"
)

// endTimeout bounds the end of containers whose processes have all been sent SIGKILL.
const endTimeout = 2 * time.Minute

// endContainers kills containers and waits until they have ended, however long that takes: the engine's own removal by force gives
// up after 10 s, with "did not receive an exit event", and leaves the container.
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
	quieten(ctx, name)
	if err := endContainers(ctx, name); err != nil {
		return err
	}
	_, err := docker(ctx, "rm", "--force", "--volumes", name)
	return err
}

// quiet waits, inside a node, until no container is being made there and none will be.
const quiet = `systemctl stop kubelet
for i in $(seq 50); do pgrep -x runc >/dev/null || exit 0; sleep 0.2; done`

// quieten makes nodes quiet before they are killed. On cgroup v1 runc freezes a container's cgroup for a moment while it makes the
// container. If runc is killed in that moment, with its node, the cgroup stays frozen, and what is frozen cannot die: the node
// would never end. What cannot be asked (it is paused, or no node) is killed all the same.
func quieten(ctx context.Context, containers ...string) {
	var all errgroup.Group
	for _, name := range containers {
		all.Go(func() error {
			_, _ = inside(ctx, name, nil, "sh", "-c", quiet)
			return nil
		})
	}
	_ = all.Wait() // it has no errors
}

// deleteCluster ends the nodes of a cluster before kind deletes it.
func deleteCluster(ctx context.Context, provider *cluster.Provider, name, kubeconfig string) error {
	text, err := docker(ctx, "ps", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+name)
	if ids := strings.Fields(text); err == nil {
		quieten(ctx, ids...)
		err = endContainers(ctx, ids...)
	}
	if deleting := provider.Delete(name, kubeconfig); deleting != nil {
		return fmt.Errorf("delete the kind cluster %s: %w", name, errors.Join(deleting, err))
	}
	return nil
}
