// Package backend is the interface between the engine and a control plane, real or modelled.
//
// A backend executes actions and records their effects as events of the history. All backends implement this one small
// interface. A backend declares what it does not support; a scenario that needs it is then *not supported* there, which
// is not *passed*. Backends are in sub-packages; this package has only what several of them need.
package backend

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Backend boots environments. It keeps control planes alive between scenarios where it can show that they are as good
// as new; Close ends them all.
type Backend interface {
	// Name is what --backend says.
	Name() string
	// Timing that scenarios run with here.
	Timing() contract.Timing
	// Unsupported lists what the scenario needs and this backend cannot do, one reason each; empty if it can run.
	Unsupported(*scenario.Scenario) []string
	// Prepare gives an environment for the scenario in the state that its topology asks for (running and healthy, or
	// stopped), recording to spec.Log from then on. Everything that it does before that (booting, resetting) it tells
	// to spec.Progress.
	Prepare(ctx context.Context, spec Spec) (Environment, error)
	// Close ends everything that the backend started. It is safe to call twice.
	Close(ctx context.Context) error
}

// Spec is what an environment must look like.
type Spec struct {
	Scenario *scenario.Scenario
	Seed     int64
	Log      *history.Log
	// OutDir receives the logs of every process of this run; it exists. Empty: nobody keeps them.
	OutDir string
	// Progress receives one line at a time about what takes more than a moment.
	Progress func(string)
	// FailedBoot receives the likely cause, in one line, of each boot that failed; nil: nobody counts them.
	FailedBoot func(cause string)
}

// Environment is a control plane with the system under test, for one scenario.
type Environment interface {
	// RunMetadata is the history's first event, filled in as far as the backend knows it: timing, tolerance, contract,
	// operator.
	RunMetadata() history.Run
	// Do carries out one action with its selectors already resolved by the engine, and returns when it has taken
	// effect (a killed process is gone, a started one answers). It records what it did to processes, links, expected nodes and
	// data; the action itself is recorded by the engine.
	Do(ctx context.Context, action scenario.Action) error
	// Nodes are the names of the nodes at this moment, sorted.
	Nodes() []string
	// Finish ends the recording: recorders drain what was logged so far. Its error says what may be missing from the history.
	Finish(ctx context.Context) error
	// Release gives the environment back; the backend decides whether it can be used again. keep leaves it running.
	Release(ctx context.Context, keep bool) error
}

// CredentialLifetime is how long a reporter has a credential that is to expire: until after it has started.
const CredentialLifetime = 3 * time.Second

// TokenReload is how often a client reads the file of its token again, at least: client-go once in 50 s, others once a minute. CredentialOverlap is how long
// the old credential is accepted when a new one is in its place, so that no such client is refused.
const (
	TokenReload       = time.Minute
	CredentialOverlap = TokenReload + 10*time.Second
)

// Collector is an environment that leaves artifacts: what people look at for whom the history is not enough. What it cannot
// collect is its error, and no judgement of anything.
type Collector interface {
	// Snapshot writes the objects as they are now into a folder that it makes. It takes a moment only: the run goes on
	// meanwhile.
	Snapshot(ctx context.Context, dir string) error
	// Collect writes everything into a folder that it makes. It comes after Finish, before Release, and may take seconds.
	Collect(ctx context.Context, dir string, progress func(string)) error
}

// Within is a backend whose environments live in a time of their own: they are prepared, used and released within f. Its context is another, which
// ends after ctx has. An error says why f was not called.
type Within interface {
	Within(ctx context.Context, seed int64, f func(ctx context.Context)) error
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
