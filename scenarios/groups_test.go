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

// group is scenarios that can use one control plane one after another: one process of the suite runs them all, while others run theirs.
type group struct {
	Name       string
	Aggregated bool // with API servers beside kube-apiserver
	Scenarios  []*scenario.Scenario
}

const (
	// together is how many scenarios one process runs on a control plane of their own. A boot takes thirteen seconds of a processor on local, and
	// on kind as long as ten scenarios.
	together = 20
	// share of a longer list: whichever process is free takes the next, on the control plane that it has already.
	share = 6
)

// groups puts scenarios together that need the same control plane, which plane names; those that will not run do not count. Control planes of one
// group come first, the longest list before others, and then the shares of longer lists, which fill the processes evenly. Scenarios with further
// API servers come last: they load a machine most.
func groups(all []*scenario.Scenario, plane func(*scenario.Scenario) string, runs func(*scenario.Scenario) bool) []group {
	byPlane := map[string][]*scenario.Scenario{}
	for _, s := range scenarios.Alike(all, plane) {
		byPlane[plane(s)] = append(byPlane[plane(s)], s)
	}
	type part struct {
		group
		parts, running int
	}
	var parts []part
	for _, list := range byPlane {
		running := count(list, runs)
		most := running
		if running > together {
			most = share
		}
		shares := chunks(list, most, runs)
		for n, c := range shares {
			name := fmt.Sprintf("on %s, part %02d", plane(list[0]), n+1)
			parts = append(parts, part{group{name, len(list[0].Topology.Aggregated()) > 0, c}, len(shares), running})
		}
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(compareBools(a.Aggregated, b.Aggregated), compareBools(a.parts > 1, b.parts > 1), cmp.Compare(b.running, a.running), strings.Compare(a.Name, b.Name))
	})
	out := make([]group, len(parts))
	for n, p := range parts {
		out[n] = p.group
	}
	return out
}

// chunks divides a list so that no more than most of each part run. After a scenario that uses its control plane up the next one would wait for a boot:
// each ends a part, from the last part backwards.
func chunks(list []*scenario.Scenario, most int, runs func(*scenario.Scenario) bool) (out [][]*scenario.Scenario) {
	var part, last []*scenario.Scenario
	for _, s := range list {
		if usesUp(s) {
			last = append(last, s)
			continue
		}
		if runs(s) && count(part, runs) == most {
			out, part = append(out, part), nil
		}
		part = append(part, s)
	}
	out = append(out, part)
	ends := 0
	for _, s := range last {
		at := len(out) - 1 - ends%len(out)
		out[at] = append(out[at], s)
		if runs(s) {
			ends++
		}
	}
	return out
}

// usesUp reports whether a scenario leaves a control plane with other nodes or another encryption, which no other scenario can use.
func usesUp(s *scenario.Scenario) bool {
	return slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool {
		return scenario.VerbOf(a) == "node" || scenario.VerbOf(a) == "encryption"
	})
}

func count(all []*scenario.Scenario, runs func(*scenario.Scenario) bool) (n int) {
	for _, s := range all {
		if runs(s) {
			n++
		}
	}
	return n
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func on(nodes int, name string) *scenario.Scenario {
	return &scenario.Scenario{Name: name, Topology: scenario.Topology{ControlPlanes: nodes}}
}

func nodes(s *scenario.Scenario) string {
	if len(s.Topology.Aggregated()) > 0 {
		return fmt.Sprint(s.Topology.ControlPlanes, " and more")
	}
	return fmt.Sprint(s.Topology.ControlPlanes)
}

// What needs the same control plane stays together, a long list in shares that come after the others; what does not run fills no share, and
// what has further API servers comes last.
func TestGroups(t *testing.T) {
	further := on(3, "runs-further")
	further.Topology.APIServers = scenario.APIServers()
	all := []*scenario.Scenario{further, on(1, "runs-a"), on(5, "runs-b"), on(1, "runs-c"), on(2, "left-out")}
	for i := range together + 4 {
		all = append(all, on(3, fmt.Sprint("runs-", i)), on(3, fmt.Sprint("left-out-", i)))
	}
	runs := func(s *scenario.Scenario) bool { return strings.HasPrefix(s.Name, "runs") }
	var got []string
	seen := 0
	for _, g := range groups(all, nodes, runs) {
		n := 0
		for _, s := range g.Scenarios {
			if seen++; runs(s) {
				n++
			}
		}
		got = append(got, fmt.Sprintf("%s: %d", g.Name, n))
	}
	want := "on 1, part 01: 2; on 5, part 01: 1; on 2, part 01: 0; on 3, part 01: 6; on 3, part 02: 6; on 3, part 03: 6; on 3, part 04: 6; on 3 and more, part 01: 1"
	if strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", strings.Join(got, "; "), want)
	}
	if seen != len(all) {
		t.Errorf("%d scenarios in the groups, want %d", seen, len(all))
	}
}

// What uses a control plane up ends a part, the last parts first.
func TestScenarioThatUsesItsControlPlaneUpComesLast(t *testing.T) {
	all := []*scenario.Scenario{on(3, "node-removed"), on(3, "encryption"), on(3, "removed-too")}
	for _, s := range all {
		s.Steps = []scenario.Step{{Action: &scenario.Encryption{}}}
	}
	for i := range together + 1 {
		all = append(all, on(3, fmt.Sprint(i)))
	}
	var got []string
	for _, g := range groups(all, nodes, func(*scenario.Scenario) bool { return true }) {
		got = append(got, g.Scenarios[len(g.Scenarios)-1].Name)
	}
	if want := "5 removed-too encryption node-removed"; strings.Join(got, " ") != want {
		t.Errorf("the parts end with %q, want %q", strings.Join(got, " "), want)
	}
}

// Scenarios with the same plugins follow each other, the larger topologies first.
func TestAlike(t *testing.T) {
	a, b, c, d := on(3, "a"), on(1, "b"), on(3, "c"), on(3, "d")
	c.Topology.KeyIDs = []string{"2", "1"}
	var got []string
	for _, s := range scenarios.Alike([]*scenario.Scenario{a, b, c, d}, nodes) {
		got = append(got, s.Name)
	}
	if strings.Join(got, " ") != "c a d b" {
		t.Errorf("%q, want c a d b", got)
	}
}
