package sim

import (
	"context"
	"fmt"
	"sync"

	aggregating "github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	reporting "github.com/kmsharness/kmsharness/reporter/core"
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
	// Timing of reporters and aggregators; zero: LocalTiming.
	Timing contract.Timing
	// MaxRequestBytes is etcd's limit; 0: its default.
	MaxRequestBytes int
	// Changes records of an object only the items that changed, so that a thousand nodes are not recorded anew with each report.
	// A history of this kind says less than the checker needs.
	Changes bool
	// Cores take the place of this project's own where they are set. Those that are wrong on purpose show what a simulation finds.
	Cores Cores
}

// Cores are the system under test.
type Cores struct {
	// Step is a reporter's.
	Step func(reporting.Config, reporting.State, reporting.Event) (reporting.State, reporting.Action)
	// Decide is the aggregator's.
	Decide func(aggregating.Input, aggregating.Memory) aggregating.Decision

	again bool // Decide is the project's own, which a Stepper may repeat
}

func (c Cores) withDefaults() Cores {
	if c.Step == nil {
		c.Step = reporting.Step
	}
	c.again = c.Decide == nil
	if c.Decide == nil {
		c.Decide = aggregating.Step
	}
	return c
}

var _ backend.Backend = (*Backend)(nil)

// New makes the backend.
func New(o Options) *Backend {
	return &Backend{opts: o, types: sync.OnceValues(func() (*store.Types, error) { return store.LoadTypes(crds.TechPreview) })}
}

// Name implements backend.Backend.
func (b *Backend) Name() string { return Name }

// Timing implements backend.Backend.
func (b *Backend) Timing() contract.Timing {
	if b.opts.Timing == (contract.Timing{}) {
		return LocalTiming()
	}
	return b.opts.Timing
}

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
	e, err := newEnvironment(spec, b.Timing(), store.New(types, store.Options{SSA: b.opts.SSA, MaxRequestBytes: b.opts.MaxRequestBytes}), b.opts.Cores.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("sim backend: prepare scenario %s: %w", spec.Scenario.Name, err)
	}
	e.w.changes = b.opts.Changes
	return e, nil
}

// Close implements backend.Backend.
func (b *Backend) Close(context.Context) error { return nil }
