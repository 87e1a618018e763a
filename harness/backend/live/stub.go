package live

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/backend/apiservers"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

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
	if slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool { return a.Verb() == scenario.VerbNode }) {
		lacks = append(lacks, "node with aggregated API servers: their pods stay where they are")
	}
	return lacks
}
