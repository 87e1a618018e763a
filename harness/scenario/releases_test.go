package scenario_test

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// TestReleases: a node has the release at its place in the list, or the last one; what steps name is built, too.
func TestReleases(t *testing.T) {
	restart := func(role, release string) scenario.Step {
		return scenario.Step{Action: &scenario.Process{Do: scenario.VerbRestart, Target: scenario.Selector{Role: role}, Release: release}}
	}
	s := scenario.Scenario{Topology: scenario.Topology{Kubernetes: []string{"1.36", "1.34"}}, Steps: []scenario.Step{
		restart(history.RoleAPIServer, "1.37"), restart(history.RoleReporter, scenario.ReleasePrevious), restart(history.RoleAggregator, scenario.ReleaseNewer), restart(history.RoleOperator, scenario.ReleaseOlder),
	}}.WithDefaults()
	for node, want := range map[string]string{"cp-1": "1.36", "cp-2": "1.34", "cp-3": "1.34", "cp-9": "1.34"} {
		if got := s.Topology.KubernetesOf(node); got != want {
			t.Errorf("%s is of %q, expected %q", node, got, want)
		}
	}
	if got := s.Kubernetes(); !slices.Equal(got, []string{"1.34", "1.36", "1.37"}) {
		t.Errorf("releases %v", got)
	}
	if got := s.Previous(); !slices.Equal(got, []string{history.RoleReporter}) {
		t.Errorf("previous releases of %v", got)
	}
	if none := new(scenario.Topology).KubernetesOf("cp-1"); none != "" {
		t.Errorf("%q without releases", none)
	}
}
