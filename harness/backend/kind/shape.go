package kind

import (
	"strings"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// shape is what planes that can stand for each other have in common.
type shape struct {
	nodes   int    // that a scenario begins with
	further string // API servers beside kube-apiserver, joined
	crds    string // variant of the operators' CRDs; empty: the usual one
}

func shapeOf(s *scenario.Scenario) shape {
	is := shape{nodes: s.Topology.ControlPlanes, further: strings.Join(s.Topology.Further(), ","), crds: s.Topology.CRDs}
	if is.nodes == 0 {
		is.nodes = 3
	}
	return is
}

// furtherNames are those of shape.further.
func (s shape) furtherNames() []string {
	return strings.FieldsFunc(s.further, func(r rune) bool { return r == ',' })
}
