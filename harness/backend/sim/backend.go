package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Name of the backend.
const Name = "sim"

// Backend makes simulations. Each scenario has a world of its own.
type Backend struct {
	opts  Options
	types func() (*store.Types, error) // of the API servers, read once
}

// Options of a backend. The zero value is good.
type Options struct {
	// SSA is what merges applies; empty: Kubernetes' own code.
	SSA store.SSA
	// Cores take the place of this project's own where they are set. Those that are wrong on purpose show what a simulation finds.
	Cores Cores
	// Seams are where the rest of a subject can be made wrong on purpose.
	Seams Seams
}

var _ backend.Backend = (*Backend)(nil)

// New makes the backend.
func New(o Options) *Backend {
	return &Backend{opts: o, types: sync.OnceValues(func() (*store.Types, error) { return store.LoadTypes(crds.TechPreview) })}
}

// Name implements backend.Backend.
func (b *Backend) Name() string { return Name }

// Timing implements backend.Backend: that of the local backend, so that scenarios which name seconds mean the same.
func (b *Backend) Timing() contract.Timing {
	return contract.Timing{Interval: time.Second, Jitter: 100 * time.Millisecond, ProbeTimeout: 900 * time.Millisecond,
		WriteTimeout: time.Second, AggregatorLatency: time.Second}
}

// takeover is what an aggregator may need until it is in charge: the lease of its predecessor, a dial that is not answered, and
// the first lists.
const takeover = leaseDuration + 3*time.Second

// Lacks implements backend.Backend.
func (b *Backend) Lacks(s *scenario.Scenario) []string {
	var lacks []string
	for _, a := range s.Actions() {
		if a.Verb == scenario.VerbLink && a.Link.From == history.RoleReporter && a.Link.To == history.RoleLoadBalancer {
			lacks = append(lacks, "a link from reporter to load-balancer: reporters use their own node's API server here (connectivity loopback)")
		}
	}
	if _, err := operatorNamed(s.Operator); err != nil {
		lacks = append(lacks, err.Error())
	}
	return lacks
}

// Prepare implements backend.Backend. Nothing happens before the engine lets time pass.
func (b *Backend) Prepare(_ context.Context, spec backend.Spec) (backend.Environment, error) {
	types, err := b.types()
	if err != nil {
		return nil, fmt.Errorf("sim backend: %w", err)
	}
	e, err := newEnvironment(spec, b.Timing(), store.New(types, store.Options{SSA: b.opts.SSA}), b.opts)
	if err != nil {
		return nil, fmt.Errorf("sim backend: prepare scenario %s: %w", spec.Scenario.Name, err)
	}
	return e, nil
}

// Close implements backend.Backend.
func (b *Backend) Close(context.Context) error { return nil }
