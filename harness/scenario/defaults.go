package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// What a scenario gets that does not say otherwise.
const (
	DefaultControlPlanes = 3
	DefaultAggregators   = 1
	DefaultKeyID         = "1"
)

// Bounds of a topology, as its tags have them: what one machine can run.
const (
	MaxControlPlanes = 7
	MaxAggregators   = 3
	MaxKeyIDs        = 8
)

// Wire forms of a report.
const (
	ContractConditions    = history.FormConditions
	ContractHealthReports = history.FormHealthReports
)

// WithDefaults is s with the defaults in place of what is zero.
func (s Scenario) WithDefaults() *Scenario {
	t := &s.Topology
	t.ControlPlanes = cmp.Or(t.ControlPlanes, DefaultControlPlanes)
	t.Aggregators = cmp.Or(t.Aggregators, DefaultAggregators)
	t.Start = cmp.Or(t.Start, StartRunning)
	t.Lifecycle = cmp.Or(t.Lifecycle, LifecycleDirect)
	s.Operator = cmp.Or(s.Operator, Operators()[0])
	omit(&t.CRDs, history.CRDsTechPreview)
	omit(&t.AggregatorProfile, contract.AggregatorRollups)
	omit(&t.ReporterToken, TokenBound)
	omit(&t.AggregatorConnectivity, history.ConnectService)
	if t.Timing != TimingProduction {
		t.Timing = ""
	}
	if t.Connectivity == "" {
		t.Connectivity, t.AnyConnectivity = history.ConnectLoopback, true
	}
	if len(t.KeyIDs) == 0 && !t.ByOperator() {
		t.KeyIDs = []string{DefaultKeyID}
	}
	if t.APIServers == nil {
		t.APIServers = APIServers()[:1]
	}
	if s.Contract == "" {
		s.Contract, s.AnyContract = ContractConditions, true
	}
	return &s
}

// KubernetesOf is the release of the kube-apiserver of a node; empty: that of all tests.
func (t Topology) KubernetesOf(node string) string {
	if len(t.Kubernetes) == 0 {
		return ""
	}
	i := slices.Index(t.Nodes(), node)
	if i < 0 || i >= len(t.Kubernetes) {
		i = len(t.Kubernetes) - 1
	}
	return t.Kubernetes[i]
}

// Kubernetes are the releases of kube-apiservers that the scenario names, sorted.
func (s *Scenario) Kubernetes() []string {
	all := slices.Clone(s.Topology.Kubernetes)
	for _, a := range s.Actions() {
		if p, ok := a.(*Process); ok && p.Target.Role == history.RoleAPIServer {
			all = append(all, p.Release)
		}
	}
	return distinct(all)
}

// SecondPods reports whether a step starts the second pod of an API server on a node.
func (s *Scenario) SecondPods() bool {
	return slices.ContainsFunc(s.Actions(), func(a Action) bool { return Selected(a).Pod == PodSecond })
}

// Previous are the roles of which a step starts the previous release, sorted.
func (s *Scenario) Previous() []string {
	var roles []string
	for _, a := range s.Actions() {
		if p, ok := a.(*Process); ok && p.Release == ReleasePrevious {
			roles = append(roles, p.Target.Role)
		}
	}
	return distinct(roles)
}

// NodeName is the name of the i-th node, from 1.
func NodeName(i int) string { return fmt.Sprintf("cp-%d", i) }

// Nodes are the names of the nodes that are there at the beginning.
func (t Topology) Nodes() []string {
	nodes := []string{}
	for i := range min(t.ControlPlanes, MaxControlPlanes) {
		nodes = append(nodes, NodeName(i+1))
	}
	return nodes
}

// Actions are all actions of the scenario, in the order of the file, also those within groups.
func (s *Scenario) Actions() (out []Action) {
	Walk(s.Steps, func(step Step) {
		if step.Action != nil {
			out = append(out, step.Action)
		}
	})
	return out
}

// Walk calls f for each step in the order of the file, a group before its steps.
func Walk(steps []Step, f func(Step)) {
	for _, s := range steps {
		f(s)
		Walk(s.Parallel, f)
		if s.Repeat != nil {
			Walk(s.Repeat.Steps, f)
		}
	}
}

// allNodes are the nodes that are there at some time: at the beginning, or added by a step.
func (s *Scenario) allNodes() []string {
	names := s.Topology.Nodes()
	for _, a := range s.Actions() {
		if n, ok := a.(*Node); ok {
			names = append(names, n.Add, n.With)
		}
	}
	return distinct(names)
}

// allKeyIDs are the plugins that are there at some time.
func (s *Scenario) allKeyIDs() []string {
	ids, changes := slices.Clone(s.Topology.KeyIDs), 0
	for _, a := range s.Actions() {
		switch a := a.(type) {
		case *APIServer: // the operator numbers its keys, at most one for each change of the configuration
			changes++
			ids = append(ids, strconv.Itoa(changes))
		case *Process:
			if a.Unlisted {
				ids = append(ids, a.Target.KeyID)
			}
		case *Encryption:
			ids = append(ids, a.KeyIDs...)
		}
	}
	return distinct(ids)
}

// distinct are the names that are given, in their order and each once.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
