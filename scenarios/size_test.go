package scenarios_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

// nodeGroup is scenarios that begin with the same number of control-plane nodes, with further API servers on them or without. One process of the suite runs a whole group on one
// control plane, while others run theirs beside it.
type nodeGroup struct {
	Nodes      int
	Aggregated bool // API servers beside kube-apiserver
	Part       int  // of the scenarios with such nodes, 1 and up
	Scenarios  []*scenario.Scenario
}

// Name of the group.
func (g nodeGroup) Name() string {
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

// bySize groups scenarios, the largest topology first: it takes longest to boot. The order within a size stays. The first parts of all
// sizes come before the others, and those with further API servers last: they load a machine most.
func bySize(all []*scenario.Scenario) []nodeGroup {
	return grouped(all, func(nodeGroup) bool { return false })
}

// inParts is bySize with several groups of a size that has many scenarios. Those that will not run do not count.
func inParts(all []*scenario.Scenario, runs func(*scenario.Scenario) bool) []nodeGroup {
	return grouped(all, func(g nodeGroup) bool { return full(g, runs) })
}

func grouped(all []*scenario.Scenario, full func(nodeGroup) bool) []nodeGroup {
	var groups []nodeGroup
	for _, s := range all {
		further := len(s.Topology.Aggregated()) > 0
		g := lastOf(groups, s.Topology.ControlPlanes, further)
		if g == nil || full(*g) {
			next := nodeGroup{Nodes: s.Topology.ControlPlanes, Aggregated: further, Part: 1}
			if g != nil {
				next.Part += g.Part
			}
			groups = append(groups, next)
			g = &groups[len(groups)-1]
		}
		g.Scenarios = append(g.Scenarios, s)
	}
	slices.SortStableFunc(groups, func(a, b nodeGroup) int {
		return cmp.Or(cmp.Compare(a.last(), b.last()), cmp.Compare(min(a.Part, 2), min(b.Part, 2)), cmp.Compare(b.Nodes, a.Nodes))
	})
	return groups
}

// last is 1 for a group that comes after all others.
func (g nodeGroup) last() int {
	if g.Aggregated {
		return 1
	}
	return 0
}

func lastOf(groups []nodeGroup, nodes int, further bool) *nodeGroup {
	for i := range slices.Backward(groups) {
		if groups[i].Nodes == nodes && groups[i].Aggregated == further {
			return &groups[i]
		}
	}
	return nil
}

func full(g nodeGroup, runs func(*scenario.Scenario) bool) bool {
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

func on(nodes int, name string) *scenario.Scenario {
	return &scenario.Scenario{Name: name, Topology: scenario.Topology{ControlPlanes: nodes}}
}

func TestBySize(t *testing.T) {
	further := on(3, "e")
	further.Topology.APIServers = scenario.APIServers()
	groups := bySize([]*scenario.Scenario{on(1, "a"), further, on(3, "b"), on(1, "c"), on(5, "d")})
	got := ""
	for _, g := range groups {
		got += g.Name() + ":"
		for _, s := range g.Scenarios {
			got += " " + s.Name
		}
		got += "; "
	}
	if want := "on 5 nodes, part 1: d; on 3 nodes, part 1: b; on 1 nodes, part 1: a c; on 3 nodes with further API servers, part 1: e; "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Many scenarios of a size are shared out: a first part that is worth a control plane, then small ones, after the first parts of the
// other sizes. What does not run fills no part.
func TestManyOfASizeAreSharedOut(t *testing.T) {
	var all []*scenario.Scenario
	for i := range 30 {
		all = append(all, on(3, fmt.Sprint("runs-", i)), on(3, fmt.Sprint("left-out-", i)))
	}
	all = append(all, on(1, "runs-alone"))
	runs := func(s *scenario.Scenario) bool { return strings.HasPrefix(s.Name, "runs") }
	var got []string
	seen := 0
	for _, g := range inParts(all, runs) {
		n := 0
		for _, s := range g.Scenarios {
			if seen++; runs(s) {
				n++
			}
		}
		got = append(got, fmt.Sprintf("%s: %d", g.Name(), n))
	}
	if want := "on 3 nodes, part 1: 20; on 1 nodes, part 1: 1; on 3 nodes, part 2: 6; on 3 nodes, part 3: 4"; strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", strings.Join(got, "; "), want)
	}
	if seen != len(all) {
		t.Errorf("%d scenarios in the groups, want %d", seen, len(all))
	}
}

// Scenarios with the same plugins follow each other, the larger topologies first.
func TestAlike(t *testing.T) {
	a, b, c, d := on(3, "a"), on(1, "b"), on(3, "c"), on(3, "d")
	c.Topology.KeyIDs = []string{"2", "1"}
	var got []string
	for _, s := range scenarios.Alike([]*scenario.Scenario{a, b, c, d}) {
		got = append(got, s.Name)
	}
	if strings.Join(got, " ") != "c a d b" {
		t.Errorf("%q, want c a d b", got)
	}
}
