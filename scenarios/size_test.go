package scenarios_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

func on(nodes int, name string) *scenario.Scenario {
	return &scenario.Scenario{Name: name, Topology: scenario.Topology{ControlPlanes: nodes}}
}

func TestBySize(t *testing.T) {
	further := on(3, "e")
	further.Topology.APIServers = scenario.APIServers()
	groups := scenarios.BySize([]*scenario.Scenario{on(1, "a"), further, on(3, "b"), on(1, "c"), on(5, "d")})
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
	for _, g := range scenarios.InParts(all, runs) {
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
