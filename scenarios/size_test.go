package scenarios_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

func TestBySize(t *testing.T) {
	on := func(nodes int, name string) *scenario.Scenario {
		return &scenario.Scenario{Name: name, Topology: scenario.Topology{ControlPlanes: nodes}}
	}
	groups := scenarios.BySize([]*scenario.Scenario{on(1, "a"), on(3, "b"), on(1, "c"), on(5, "d")})
	got := ""
	for _, g := range groups {
		got += g.Name() + ":"
		for _, s := range g.Scenarios {
			got += " " + s.Name
		}
		got += "; "
	}
	if want := "on 5 nodes: d; on 3 nodes: b; on 1 nodes: a c; "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
