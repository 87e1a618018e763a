package virtual

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/encryption"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

type Options struct {
	undertest.System
	live.TestHooks
	// Programs that can be run, by name; nil: Programs().
	Programs map[string]Main
	// PluginArgs are further arguments of every fake plugin.
	PluginArgs []string
	// Manifest may change a manifest before it is installed, and AltSvc the field by which API servers tell clients of each other, empty of those that are not to: a cluster that is
	// set up wrongly shows what a run makes of it.
	Manifest func(*unstructured.Unstructured)
	AltSvc   func(field string) string
	// CRDs that are installed; empty: those of the topology.
	CRDs crds.Variant
	// Encryption of every API server.
	Encryption encryption.Around
	// Timing of scenarios; zero: that of local.
	Timing contract.Timing
}

// Backend runs each scenario on a control plane of its own in memory.
type Backend struct{ options Options }

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Within  = (*Backend)(nil)
)

func New(o Options) *Backend {
	if o.Programs == nil {
		o.Programs = Programs()
	}
	if o.Timing == (contract.Timing{}) {
		o.Timing = cluster.Timing()
	}
	return &Backend{o}
}

func (b *Backend) Name() string { return Name }

func (b *Backend) Timing() contract.Timing { return b.options.Timing }

func (b *Backend) Unsupported(s *scenario.Scenario) []string {
	lacks := live.UnsupportedVerbs(s, true)
	if s.Topology.ControlPlanes > maxNodes {
		lacks = append(lacks, fmt.Sprintf("%d control-plane nodes: at most %d", s.Topology.ControlPlanes, maxNodes))
	}
	if slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool {
		p, ok := a.(*scenario.Process)
		return ok && p.Do == scenario.VerbPause && !Pausable(p.Target.Role)
	}) {
		lacks = append(lacks, errPause.Error())
	}
	return slices.Concat(lacks, cluster.UnsupportedAggregated(s), cluster.UnsupportedReleases(s))
}

// Prepare implements backend.Backend. The control plane is a ground of the local backend, with memory in the place of processes, so that everything above it
// is the same code. It must be called in a bubble: Within has put the folder of the run into the context.
func (b *Backend) Prepare(ctx context.Context, spec backend.Spec) (backend.Environment, error) {
	types, err := store.LoadTypes(cmp.Or(b.options.CRDs, crds.Variant(spec.Scenario.Topology.CRDs)))
	if err != nil {
		return nil, fmt.Errorf("simulate scenario %s: %w", spec.Scenario.Name, err)
	}
	dir, ok := ctx.Value(folder{}).(string)
	if !ok {
		return nil, fmt.Errorf("simulate scenario %s: expected to be called within virtual time", spec.Scenario.Name)
	}
	if spec.Progress == nil {
		spec.Progress = func(string) {}
	}
	if spec.OutDir == "" {
		spec.OutDir = filepath.Join(dir, "kept") // which is deleted when the control plane is closed
	}
	timing := b.options.Timing
	if t := spec.Scenario.Topology; t.Timing == scenario.TimingProduction || t.AggregatorProfile == contract.AggregatorConvergence {
		timing = contract.DefaultTiming() // the bounds of that profile are of production: reports each second would cost a minute of a processor
	}
	seed := uint64(spec.Seed)
	m := newMachine(network.New(seed), seed, b.options.Programs)
	m.further = slices.Concat([]string{"--poll=" + max(plugin.DefaultPoll, timing.Interval/2).String()}, b.options.PluginArgs)
	on := &ground{machine: m, types: types, timing: timing, manifest: b.options.Manifest, altSvc: b.options.AltSvc, encryption: b.options.Encryption}
	e, err := local.On(ctx, on, spec, live.Options{System: b.options.System, TestHooks: b.options.TestHooks}, dir)
	if err != nil {
		return nil, fmt.Errorf("simulate scenario %s: %w", spec.Scenario.Name, err)
	}
	return e, nil
}

// Within implements backend.Within. A goroutine in a bubble that waits for something outside of it (the channel of a
// context) would not count as blocked, and stop virtual time. So the outer context is read once a second of virtual
// time.
func (b *Backend) Within(ctx context.Context, seed int64, f func(ctx context.Context)) (err error) {
	dir, remove, err := bubble.MakeFolder()
	if err != nil {
		return fmt.Errorf("folder for programs: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	return bubble.Run(uint64(seed), func() {
		inside, end := context.WithCancelCause(context.WithValue(context.Background(), folder{}, dir))
		defer end(nil)
		over := make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() {
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for ctx.Err() == nil {
				select {
				case <-ticker.C:
				case <-over:
					return
				}
			}
			end(context.Cause(ctx))
		})
		defer watching.Wait()
		defer close(over)
		f(inside)
	})
}

// folder is the key under which a context has the folder of a bubble's programs.
type folder struct{}

// Kept returns no environments: a bubble ends with its scenario.
func (b *Backend) Kept() []*live.Environment { return nil }

// Close implements backend.Backend: nothing is left.
func (b *Backend) Close(context.Context) error { return nil }
