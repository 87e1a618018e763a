package backend

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

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
		if _, ok := a.(scenario.Doer); !ok && h[reflect.TypeOf(a)] == nil {
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
func (h Handlers) Do(ctx context.Context, c scenario.Cluster, a scenario.Action) error {
	if do := h[reflect.TypeOf(a)]; do != nil {
		return do(ctx, a)
	}
	if d, ok := a.(scenario.Doer); ok {
		return d.Do(ctx, c)
	}
	return fmt.Errorf("this backend has no handler for %s", scenario.VerbOf(a))
}
