package scenarios

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Group is the scenarios that begin with the same number of control-plane nodes.
type Group struct {
	Nodes     int
	Scenarios []*scenario.Scenario
}

// Name of the group.
func (g Group) Name() string { return fmt.Sprintf("on %d nodes", g.Nodes) }

// BySize groups scenarios, the largest topology first: it takes longest to boot. The order within a group stays. One process of
// the suite runs a whole group, so that it needs one control plane, while others run theirs beside it.
func BySize(all []*scenario.Scenario) []Group {
	var groups []Group
	for _, s := range all {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Nodes == s.Topology.ControlPlanes })
		if i < 0 {
			i, groups = len(groups), append(groups, Group{Nodes: s.Topology.ControlPlanes})
		}
		groups[i].Scenarios = append(groups[i].Scenarios, s)
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return groups
}
