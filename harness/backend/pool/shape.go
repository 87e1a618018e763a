package pool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Shape is what control planes that can stand for each other have in common.
type Shape struct {
	Nodes int // that a scenario begins with
	// CRDs is the variant of the operators' CRDs; empty: the usual one. Connectivity is how reporters reach the API.
	CRDs, Connectivity string
	// Aggregated are the aggregated API servers, and KeyIDs the plugins where there are such, joined.
	Aggregated, KeyIDs string
	// Kubernetes are the releases of the API servers of the nodes, and Releases all programs of other releases that the scenario names, joined.
	Kubernetes, Releases string
	// Timing is that of the topology.
	Timing string
	// Advertises: API servers tell clients of each other. FailsOver: programs know API servers by address.
	Advertises, FailsOver bool
}

func ShapeOf(s *scenario.Scenario) Shape {
	is := Shape{Nodes: s.Topology.ControlPlanes, CRDs: s.Topology.CRDs, Connectivity: s.Topology.Connectivity, Aggregated: strings.Join(s.Topology.Aggregated(), ","),
		Kubernetes: strings.Join(s.Topology.Kubernetes, ","), Releases: strings.Join(slices.Concat(s.Kubernetes(), s.Previous()), ","),
		Timing: s.Topology.Timing, Advertises: s.Topology.Advertises(), FailsOver: s.Topology.FailsOver()}
	if is.Nodes == 0 {
		is.Nodes = 3
	}
	if is.Aggregated != "" {
		is.KeyIDs = strings.Join(live.KeyIDs(s), ",")
	}
	return is
}

func (s Shape) APIServers() []string { return parts(s.Aggregated) }

// KubernetesOf is as that of a topology.
func (s Shape) KubernetesOf(node string) string {
	return scenario.Topology{ControlPlanes: s.Nodes, Kubernetes: parts(s.Kubernetes)}.KubernetesOf(node)
}

func parts(joined string) []string {
	return strings.FieldsFunc(joined, func(r rune) bool { return r == ',' })
}

// Streams reports whether reporters stream to the aggregator: then they have no rights, which the cluster's roles decide.
func (s Shape) Streams() bool { return s.Connectivity == history.ConnectStream }

func (s Shape) String() string {
	text := fmt.Sprintf("%d nodes", s.Nodes)
	if s.Nodes == 1 {
		text = "1 node"
	}
	reached := s.Connectivity
	if s.Advertises && reached != history.ConnectAltSvc {
		reached = strings.TrimPrefix(reached+" and "+history.ConnectAltSvc, " and ")
	}
	releases := ""
	if s.Releases != "" {
		releases = "releases " + s.Releases
	}
	return strings.Join(append([]string{text}, slices.DeleteFunc([]string{s.CRDs, reached, s.Aggregated, s.KeyIDs, releases, s.Timing}, func(o string) bool { return o == "" })...), ", ")
}
