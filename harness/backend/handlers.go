package backend

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Handlers carry out the actions of a backend, by verb. A verb without a handler is not supported.
type Handlers map[scenario.Verb]func(context.Context, scenario.Action) error

// Handle makes a handler of a function for actions of one type.
func Handle[A scenario.Action](do func(context.Context, A) error) func(context.Context, scenario.Action) error {
	return func(ctx context.Context, a scenario.Action) error {
		typed, ok := a.(A)
		if !ok {
			return fmt.Errorf("%s is a %T, expected a %T", a.Verb(), a, typed)
		}
		return do(ctx, typed)
	}
}

// Unsupported names the verbs of a scenario that have no handler, with the reason where one is known.
func (h Handlers) Unsupported(s *scenario.Scenario, reasons map[scenario.Verb]string) (lacks []string) {
	for _, a := range s.Actions() {
		if verb := a.Verb(); h[verb] == nil {
			lacks = append(lacks, cmp.Or(reasons[verb], fmt.Sprintf("%s: this backend has no handler for it", verb)))
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}

// Do carries out an action.
func (h Handlers) Do(ctx context.Context, a scenario.Action) error {
	do := h[a.Verb()]
	if do == nil {
		return fmt.Errorf("not supported by this backend, which knows %v", slices.Sorted(maps.Keys(h)))
	}
	return do(ctx, a)
}
