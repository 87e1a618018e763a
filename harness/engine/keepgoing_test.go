package engine_test

import (
	"context"
	"testing"

	"github.com/kmsharness/kmsharness/harness/engine"
)

const three = hang + `  - expect: rollup.degraded.status == "Unknown"
    within: detection
  - expect: rollup.degraded.status == "False"
    within: 1I
  - expect: report["cp-1"]["1"].status == "error"
    within: 1I
  - release: {plugin: {node: cp-2}}
  - expect: rollup.degraded.reason == "AsExpected"
    within: recovery
`

// TestKeepGoing: after a failed expectation each later one is judged on its own, and what fails in the same way again says so.
func TestKeepGoing(t *testing.T) {
	w := newWorld(t)
	w.opts = engine.Options{KeepGoing: true}
	events, err := w.run(context.Background(), "", three)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "expectations", expectations(events), "before.expect ok 0s", "steps[1].expect failed 3.6s", "steps[2].expect failed 1s", "steps[3].expect failed 1s",
		"steps[5].expect ok 1s", "after.expect ok 0s", "after.holds ok 2s")
	for _, e := range events {
		if x := e.Expectation; x != nil && (x.Repeats != "") != (x.ID == "steps[2].expect") {
			t.Errorf("%s repeats %q", x.ID, x.Repeats)
		}
	}
}

// TestHouseRuleGoesOn: an expectation that rests on a decision of this project does not end the run of a program of others.
func TestHouseRuleGoesOn(t *testing.T) {
	for _, c := range []struct {
		sourceOnly bool
		want       []string
	}{
		{true, []string{"before.expect ok 0s", "steps[0].expect failed 1s", "steps[1].holds ok 1s", "after.expect ok 0s", "after.holds ok 2s"}},
		{false, []string{"before.expect ok 0s", "steps[0].expect failed 1s"}},
	} {
		w := newWorld(t)
		w.opts = engine.Options{SourceOnly: c.sourceOnly}
		events, err := w.run(context.Background(), "", `  - expect: rollup.degraded.status == "True"
    within: 1I
    origin: house
  - holds: rollup.degraded.status == "False"
    for: 1I
`)
		if err != nil {
			t.Fatal(err)
		}
		wantLines(t, "expectations", expectations(events), c.want...)
	}
}
