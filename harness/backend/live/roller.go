package live

import (
	"context"
	"strings"
)

// Roller is a control plane that replaces an API server's pod for every revision of what is in it. On others plugins, reporters and configurations
// change in a pod that stays.
type Roller interface {
	// Roll replaces the pod of a node, and returns when its API server and its plugins run. The reporter, if there is one, waits to be started.
	Roll(ctx context.Context, n *Node, r PodRevision) (Pod, error)
}

// PodRevision is what a pod is made of.
type PodRevision struct {
	Number int
	// Plugins are the names of their sockets. A pod without plugins has no reporter.
	Plugins []string
	// Change changes files of the pod while it is down.
	Change func(ctx context.Context) error
	// Ready is told of every process that answers again.
	Ready func(*Target)
}

// Pod is one that was made.
type Pod struct {
	Namespace, Name string
	Containers      []string // beside that of the API server
}

func (p Pod) describe() string {
	if len(p.Containers) == 0 {
		return "no sidecars"
	}
	return "with " + strings.Join(p.Containers, ", ")
}
