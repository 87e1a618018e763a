package sim_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

const head = `apiVersion: kmsharness.io/v1alpha1
kind: Scenario
metadata: {name: clocks, title: Clocks that are wrong., area: reporter}
spec:
  steps:
`

// A node whose clock is less than an interval ahead is believed; one that is more is skewed, and one that is far behind is stale.
// A wrong clock of the aggregator makes all of them so.
func TestClocks(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	const back = "  - clock: {node: cp-2, mode: restore}\n  - expect: rollup.degraded.status == \"False\"\n    within: recovery\n"
	unknown := func(reason string) string {
		return "  - expect: rollup.degraded.status == \"Unknown\" && rollup.degraded.reason == \"" + reason + "\" && rollup.degraded.message.contains(\"cp-2\")\n    within: 2I + A\n"
	}
	for name, steps := range map[string]string{
		"a little ahead": "  - clock: {node: cp-2, mode: ahead, by: 0.5I}\n  - holds: rollup.degraded.status == \"False\"\n    for: 10I\n" + back,
		"far ahead":      "  - clock: {node: cp-2, mode: ahead, by: 5I}\n" + unknown("ClockSkew") + back,
		"far behind":     "  - clock: {node: cp-2, mode: behind, by: 10I}\n  - wait: 2I\n" + back,
		"all ahead":      "  - clock: {node: all, mode: ahead, by: 3I}\n" + unknown("ClockSkew"),
		"aggregator":     "  - clock: {role: aggregator, mode: behind, by: 3I}\n" + unknown("ClockSkew"),
		"aggregator far": "  - clock: {role: aggregator, mode: ahead, by: 6I}\n" + unknown("ReportStale"),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parser.Parse("clocks.yaml", []byte(head+steps))
			if err != nil {
				t.Fatal(err)
			}
			for seed := range int64(5) {
				pass(t, sim.New(sim.Options{SSA: store.Model}), s, seed)
			}
		})
	}
}
