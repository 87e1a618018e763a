package sim_test

import (
	"fmt"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// A node off the network has no way to the load balancer, whichever way its reporter has beside that: one that starts meanwhile reports nothing.
func TestNodeOffTheNetworkHasNoLoadBalancer(t *testing.T) {
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"service", "altsvc"} {
		s, err := parser.Parse("off.yaml", fmt.Appendf(nil, `apiVersion: kmsharness.io/v1alpha1
kind: Scenario
metadata: {name: off, title: "Off the network.", area: network}
spec:
  topology: {connectivity: %s}
  steps:
  - link: {from: node, to: network, node: cp-2, mode: cut}
  - restart: {role: reporter, node: cp-2}
  - expect: rollup.degraded.reason == "ReportStale" && !report["cp-2"]["1"].fresh
    within: staleness + I
  - never: report["cp-2"]["1"].fresh
    for: 6I
  - link: {from: node, to: network, node: cp-2, mode: restore}
  - expect: rollup.degraded.reason == "AsExpected" && report["cp-2"]["1"].fresh
    within: recovery + W
`, way))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range int64(3) {
			pass(t, sim.New(sim.Options{SSA: store.Model}), s, seed)
		}
	}
}
