package sim_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// What a simulation has no model of it says, and takes nothing else for it.
func TestLacksFurtherAPIServers(t *testing.T) {
	b := sim.New(sim.Options{})
	s := scenario.Scenario{}.WithDefaults()
	if lacks := b.Lacks(s); len(lacks) > 0 {
		t.Errorf("kube-apiserver alone: %v", lacks)
	}
	s.Topology.APIServers = scenario.APIServers()
	if lacks := strings.Join(b.Lacks(s), "\n"); !strings.Contains(lacks, "openshift-apiserver and oauth-apiserver") {
		t.Errorf("three: %q", lacks)
	}
}
