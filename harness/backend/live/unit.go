package live

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Unit is a place for one process at a time: one that was stopped or killed stays away until it is started.
type Unit interface {
	// Start starts it unless it runs, and returns when it answers.
	Start(ctx context.Context) error
	// Stop asks it to end and waits, Kill does not ask. Both are content with one that is gone already.
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	// Pause and Resume stop and continue it as a whole; it keeps its connections.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Status() Status
}

// Silencer is a Unit that can be cut off from all other machines. Resume ends that.
type Silencer interface {
	Silence(ctx context.Context) error
}

// NoSilence is why processes cannot be silenced where they are real.
const NoSilence = "silence: real processes share the network of their machine: pause stops one, and link cuts its connections with API servers"

// Silence cuts a unit off from all other machines, if it can be.
func Silence(ctx context.Context, u any) error {
	if s, ok := u.(Silencer); ok {
		return s.Silence(ctx)
	}
	return errors.New(NoSilence)
}

// Status of a unit.
type Status struct {
	Phase Phase
	PID   int
	// Crashed: it has ended, and nobody asked it to.
	Crashed bool
}

// Phase of a unit's life.
type Phase int

// Phases.
const (
	Never Phase = iota // not started so far
	Running
	Paused
	Ended
)

// Running says whether there is a process, paused or not.
func (s Status) Running() bool { return s.Phase == Running || s.Phase == Paused }

// Target is a unit with what the history calls it.
type Target struct {
	Unit
	Identity history.Process
}

// Wardle is the API group of k8s.io/sample-apiserver, Flunders its resource as encryption configurations name it.
const (
	Wardle   = apiservers.Wardle
	Flunders = apiservers.Plural + "." + Wardle
)

// Stub is how sample-apiserver stands for an API server beside kube-apiserver, on a real control plane.
type Stub struct{ apiservers.Stub }

func StubOf(apiServer string) (Stub, error) {
	s, err := apiservers.StubOf(apiServer)
	return Stub{s}, err
}

// Encrypted are the objects that it encrypts.
func (s Stub) Encrypted() Encrypted {
	return Encrypted{Resource: schema.GroupVersionResource{Group: Wardle, Version: s.Version, Resource: apiservers.Plural}, Kind: "Flunder",
		Registry: s.Registry(), Field: s.Field, Spec: map[string]any{"referenceType": "Flunder"}}
}

// UnsupportedAggregated names what a scenario does that is impossible beside aggregated API servers; nothing without them.
func UnsupportedAggregated(s *scenario.Scenario) []string {
	var lacks []string
	if len(s.Topology.Aggregated()) == 0 {
		return nil
	}
	if s.Topology.Start == scenario.StartStopped {
		lacks = append(lacks, "start: stopped with aggregated API servers: they end where no kube-apiserver answers them, and nobody starts them again")
	}
	if s.Topology.Aggregators > 1 {
		lacks = append(lacks, "several aggregators with aggregated API servers: one for each is run")
	}
	if slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool { return scenario.VerbOf(a) == "node" }) {
		lacks = append(lacks, "node with aggregated API servers: their pods stay where they are")
	}
	return lacks
}
