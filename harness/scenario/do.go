package scenario

import (
	"context"

	"k8s.io/client-go/dynamic"
)

// Cluster is what an action uses of a control plane to carry itself out. Every backend has it.
type Cluster interface {
	// Nodes are the names of the nodes at this moment, sorted.
	Nodes() []string
	// Client is one of an administrator, past load balancers and faults: to the API server of a node, or to any that serves if node is empty. The
	// caller does not close it.
	Client(node string) (dynamic.Interface, error)
	// Do carries out another action, such as Process on the processes that its selector picks. Its durations must be resolved, and an empty
	// name of a node stands for all.
	Do(ctx context.Context, a Action) error
	// Record adds an event to the history, now: a payload of package history.
	Record(payload any)
}

// Doer is an action that carries itself out, on any control plane: a verb for which no backend needs a handler. Do returns when it has taken effect.
type Doer interface {
	Action
	Do(ctx context.Context, c Cluster) error
}
