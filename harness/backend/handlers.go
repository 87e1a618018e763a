package backend

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/client-go/dynamic"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Cluster is what an action of another module uses of a control plane. Every backend has it.
type Cluster interface {
	// Nodes are the names of the nodes at this moment, sorted.
	Nodes() []string
	// Client is one of an administrator, past load balancers and faults: to the API server of a node, or to any that serves if node is empty. The
	// caller does not close it.
	Client(node string) (dynamic.Interface, error)
	// Do carries out another action, such as scenario.Process on the processes that its selector picks. Its durations must be resolved, and an empty
	// name of a node stands for all.
	Do(ctx context.Context, a scenario.Action) error
	// Record adds an event to the history, now: a payload of package history.
	Record(payload any)
}

// Doer is an action that carries itself out, on any control plane: a verb of another module, for which no backend has a handler. It returns when it has
// taken effect.
type Doer interface {
	scenario.Action
	Do(ctx context.Context, c Cluster) error
}

// Handlers carry out the actions of a backend, by type.
type Handlers map[reflect.Type]func(context.Context, scenario.Action) error

// Handle makes do the handler of actions of one type.
func Handle[A scenario.Action](h Handlers, do func(context.Context, A) error) {
	h[reflect.TypeFor[A]()] = func(ctx context.Context, a scenario.Action) error { return do(ctx, a.(A)) }
}

// Unsupported names what of a scenario no handler and no Doer carries out, and the verbs that cannot be carried out for another reason.
func (h Handlers) Unsupported(s *scenario.Scenario, reasons map[scenario.Verb]string) (lacks []string) {
	for _, a := range s.Actions() {
		verb, reason := scenario.VerbOf(a), ""
		if _, ok := a.(Doer); !ok && h[reflect.TypeOf(a)] == nil {
			reason = fmt.Sprintf("%s: this backend has no handler for it", verb)
		}
		if reason = cmp.Or(reasons[verb], reason); reason != "" {
			lacks = append(lacks, reason)
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

// Do carries out an action on a control plane.
func (h Handlers) Do(ctx context.Context, c Cluster, a scenario.Action) error {
	if do := h[reflect.TypeOf(a)]; do != nil {
		return do(ctx, a)
	}
	if d, ok := a.(Doer); ok {
		return d.Do(ctx, c)
	}
	return fmt.Errorf("this backend has no handler for %s", scenario.VerbOf(a))
}
