package scenarios

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Group is scenarios that begin with the same number of control-plane nodes, with further API servers on them or without. One process of the suite runs a whole group on one
// control plane, while others run theirs beside it.
type Group struct {
	Nodes      int
	Aggregated bool // API servers beside kube-apiserver
	Part       int  // of the scenarios with such nodes, 1 and up
	Scenarios  []*scenario.Scenario
}

// Name of the group.
func (g Group) Name() string {
	further := ""
	if g.Aggregated {
		further = " with further API servers"
	}
	return fmt.Sprintf("on %d nodes%s, part %d", g.Nodes, further, g.Part)
}

// How many scenarios a group has. The first of a size is worth a control plane of its own: on kind twenty scenarios take twice
// the time of booting one. The others are small, so that whichever process is free takes the next: it has a control plane
// already, or boots a second one for what is left.
const (
	firstPart = 20
	nextParts = 6
)

// BySize groups scenarios, the largest topology first: it takes longest to boot. The order within a size stays. The first parts of all
// sizes come before the others, and those with further API servers last: they load a machine most.
func BySize(all []*scenario.Scenario) []Group { return group(all, func(Group) bool { return false }) }

// InParts is BySize with several groups of a size that has many scenarios. Those that will not run do not count.
func InParts(all []*scenario.Scenario, runs func(*scenario.Scenario) bool) []Group {
	return group(all, func(g Group) bool { return full(g, runs) })
}

func group(all []*scenario.Scenario, full func(Group) bool) []Group {
	var groups []Group
	for _, s := range all {
		further := len(s.Topology.Aggregated()) > 0
		g := last(groups, s.Topology.ControlPlanes, further)
		if g == nil || full(*g) {
			next := Group{Nodes: s.Topology.ControlPlanes, Aggregated: further, Part: 1}
			if g != nil {
				next.Part += g.Part
			}
			groups = append(groups, next)
			g = &groups[len(groups)-1]
		}
		g.Scenarios = append(g.Scenarios, s)
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.last(), b.last()), cmp.Compare(min(a.Part, 2), min(b.Part, 2)), cmp.Compare(b.Nodes, a.Nodes))
	})
	return groups
}

// last is 1 for a group that comes after all others.
func (g Group) last() int {
	if g.Aggregated {
		return 1
	}
	return 0
}

func last(groups []Group, nodes int, further bool) *Group {
	for i := range slices.Backward(groups) {
		if groups[i].Nodes == nodes && groups[i].Aggregated == further {
			return &groups[i]
		}
	}
	return nil
}

func full(g Group, runs func(*scenario.Scenario) bool) bool {
	limit := nextParts
	if g.Part == 1 {
		limit = firstPart
	}
	for _, s := range g.Scenarios {
		if runs(s) {
			limit--
		}
	}
	return limit <= 0
}

// Alike orders scenarios so that those with the same nodes, plugins and provider follow each other: the control plane of one serves the next
// without a restart of its API servers. The order within such a group stays.
func Alike(all []*scenario.Scenario) []*scenario.Scenario {
	key := func(s *scenario.Scenario) string {
		return fmt.Sprint(9-s.Topology.ControlPlanes, s.Topology.ByOperator(), s.Topology.KeyIDs, s.Topology.Profile)
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *scenario.Scenario) int { return cmp.Compare(key(a), key(b)) })
	return sorted
}
