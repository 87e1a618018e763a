// Package mutants lists subjects that are wrong on purpose, and what must catch each: the test of the tester. A change
// to the harness that lets one of them pass has blinded it.
//
// Most are a program of this project with one thing changed, and run in virtual time (sim). What only processes can get wrong runs as one: those
// mistakes are in cmd/. A broken plugin needs no program of its own, because the fake plugin takes faults from its command line.
// How they are run and judged is in mutants/trial. `make mutants` runs them all.
package mutants

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/coverage"
	"github.com/kmsharness/kmsharness/scenarios/mutants/kmsplugin"
)

// Family is the part of the system that is wrong.
type Family string

const (
	Reporter   Family = "reporter"
	Aggregator Family = "aggregator"
	Plugin     Family = "plugin"
	Operator   Family = "operator"
	// Cluster is how a cluster is set up for them.
	Cluster Family = "cluster"
)

type Mutant struct {
	Name   string
	Family Family
	// Mistake is the real one that it stands for.
	Mistake string
	// Scenario of the catalogue that brings it out.
	Scenario string
	// Caught are the invariants and expectations that must fail, all of them. More may. The first names the mistake.
	Caught []string

	// Contract is the wire form that the mistake is about; empty: it can be made in either.
	Contract string

	// Virtual makes it for one run of the virtual control plane; nil for all others.
	Virtual func() virtual.Options
	// Program is below cmd/; empty for a plugin. Args are its arguments, with the placeholders of a command template,
	// or the further arguments of every plugin.
	Program string
	Args    string
	// Manifest makes a cluster wrong that is set up with it; nil for all others.
	Manifest func(*unstructured.Unstructured)
	// MountSockets: it insists on the socket paths of a static pod, which takes root.
	MountSockets bool
}

func (m Mutant) Cause() string {
	if len(m.Caught) == 0 {
		return ""
	}
	return m.Caught[0]
}

// Simulated reports whether it runs in virtual time, on a control plane in memory.
func (m Mutant) Simulated() bool { return m.Virtual != nil }

// Backend is where it runs: sim or local.
func (m Mutant) Backend() string {
	if m.Simulated() {
		return virtual.Name
	}
	return "local"
}

// All mutants, the simulated ones first. A new one needs an entry in one of these lists and nothing else.
func All() []Mutant {
	return slices.Concat(
		of(Reporter, emission(), failingOver(), choosing(), connecting(), streamingReporters(), configuredReporters(), probing(), formats(), typed(), identity(), providerReporters(), refusedReporters(), aggregatedReporters()),
		of(Aggregator, rollups(), freshness(), cleanups(), aggregating(), converging(), uniting(), connectingAggregators(), streamingAggregators(), configuringAggregators(), providerAggregators(), refusedAggregators(), aggregatedAggregators()),
		of(Plugin, plugins(), providerPlugins(), aggregatedPlugins()),
		of(Operator, switches(), aggregatedSwitches(), deciders(), starters(), checkers(), claimants()),
		of(Cluster, policies()),
		processes())
}

// Find is the mutant of a name.
func Find(name string) (Mutant, error) {
	all := All()
	i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
	if i < 0 {
		return Mutant{}, fmt.Errorf("there is no mutant %s", name)
	}
	return all[i], nil
}

func of(f Family, lists ...[]Mutant) []Mutant {
	all := slices.Concat(lists...)
	for i := range all {
		all[i].Family = f
	}
	return all
}

// Subjects are all wrong subjects by name, those of the suite for plugins included, for scenarios/statements.yaml.
func Subjects() map[string]coverage.Subject {
	all := map[string]coverage.Subject{}
	for _, m := range All() {
		all[m.Name] = coverage.Subject{Scenario: m.Scenario, Caught: m.Caught}
	}
	for _, m := range kmsplugin.All() {
		all[m.Name] = coverage.Subject{Caught: append(slices.Clone(m.Also), m.Caught)}
	}
	return all
}
