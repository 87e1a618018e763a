package cluster

import (
	"context"
	"strings"
)

// Roller is a control plane that replaces an API server's pod for every revision of its content, as a kubelet does with
// a static pod whose manifest changed (kind). On other control planes plugins, reporters and configurations change in a
// pod that stays.
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
	// Ready is called for each process that answers again.
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

func (p Pod) Describe() string {
	if len(p.Containers) == 0 {
		return "no sidecars"
	}
	return "with " + strings.Join(p.Containers, ", ")
}
