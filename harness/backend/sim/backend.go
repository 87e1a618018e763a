package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Name of the backend.
const Name = "twin"

// Backend makes simulations. Each scenario has a world of its own.
type Backend struct {
	opts  Options
	types map[string]func() (*store.Types, error) // of the API servers, by variant of the CRDs; each read once
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
	// TestHooks are where the rest of a subject can be made wrong on purpose.
	TestHooks TestHooks
	// Unhealthy is what API servers make of a plugin that says that it is not well.
	Unhealthy Unhealthy
	// CPUs of each API server, for the work that applies make; 0: two, as where that work was measured; Unlimited: it takes no time,
	// so that any number of reporters can write one object.
	CPUs int
}

// Unlimited is more processors than there is work for.
const Unlimited = -1

func (o Options) cpus() int {
	switch {
	case o.CPUs == 0:
		return defaultCPUs
	case o.CPUs < 0:
		return 0
	}
	return o.CPUs
}

// Unhealthy says whether a Status whose healthz is not "ok" and whose key_id is good keeps the key for writes from expiring
// (kubernetes/kubernetes#138950).
type Unhealthy string

// What API servers do.
const (
	// UnhealthyExtends: the key is extended, or made anew, as if the plugin were well, so that writes never stop. Every release
	// until now does this, v1.37.1 among them (TestUnhealthyPluginExtendsTheKey of the model's confirmations).
	UnhealthyExtends Unhealthy = ""
	// UnhealthyCoasts: writes stop three minutes after the last Status that was well, as after one that failed.
	UnhealthyCoasts Unhealthy = "coasts"
	// UnhealthyDrawn: one or the other, by the seed.
	UnhealthyDrawn Unhealthy = "drawn"
)

// of is what API servers do in the simulation of a seed.
func (u Unhealthy) of(seed int64) Unhealthy {
	switch {
	case u != UnhealthyDrawn:
		return u
	case rand.New(rand.NewPCG(uint64(seed), 0x138950)).IntN(2) == 0:
		return UnhealthyExtends
	}
	return UnhealthyCoasts
}

var _ backend.Backend = (*Backend)(nil)

// New makes the backend.
func New(o Options) *Backend {
	return &Backend{opts: o, types: map[string]func() (*store.Types, error){
		"": loading(crds.TechPreview), history.CRDsDefault: loading(crds.Default),
	}}
}

// loading reads the schemas of a variant of the CRDs, once.
func loading(v crds.Variant) func() (*store.Types, error) {
	return sync.OnceValues(func() (*store.Types, error) { return store.LoadTypes(v) })
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

// Unsupported implements backend.Backend.
func (b *Backend) Unsupported(s *scenario.Scenario) []string {
	var lacks []string
	lacks = append(lacks, new(environment).handlers().Unsupported(s, nil)...)
	lacks = append(lacks, unsupportedWithAggregated(s)...)
	if _, err := operatorNamed(s.Operator); err != nil {
		lacks = append(lacks, err.Error())
	}
	return lacks
}

// Prepare implements backend.Backend. Nothing happens before the engine lets time pass.
func (b *Backend) Prepare(_ context.Context, spec backend.Spec) (backend.Environment, error) {
	types, err := b.types[spec.Scenario.Topology.CRDs]()
	if err != nil {
		return nil, fmt.Errorf("sim backend: %w", err)
	}
	e, err := newEnvironment(spec, b.Timing(), store.New(types, store.Options{SSA: b.opts.SSA, MaxRequestBytes: b.opts.MaxRequestBytes}), b.opts)
	if err != nil {
		return nil, fmt.Errorf("sim backend: prepare scenario %s: %w", spec.Scenario.Name, err)
	}
	e.w.observer.changes = b.opts.Changes
	return e, nil
}

// Close implements backend.Backend.
func (b *Backend) Close(context.Context) error { return nil }
