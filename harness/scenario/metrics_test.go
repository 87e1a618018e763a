package scenario_test

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestWithoutMetrics(t *testing.T) {
	expect := func(cel string, mode scenario.Mode) scenario.Step {
		return scenario.Step{Expect: &scenario.Expectation{Mode: mode, CEL: cel, Bound: scenario.D("2I")}}
	}
	const rollup = `rollup.degraded.reason == "a && metrics"`
	s := &scenario.Scenario{Steps: []scenario.Step{
		expect(rollup, scenario.ModeWithin),
		expect(rollup+` && expected.all(n, metrics[n]["1"].healthy == 1 && true)`, scenario.ModeWithin),
		expect(`metrics["cp-1"]["1"].healthy == 1 || kmsActive`, scenario.ModeHolds),
		{Parallel: []scenario.Step{expect(`metrics.size() == 1`, scenario.ModeWithin)}},
		{Repeat: &scenario.Repeat{Times: 2, Steps: []scenario.Step{expect("kmsActive", scenario.ModeNever)}}},
	}}
	out, left, all := s.WithoutMetrics()
	if want := []string{"steps[1]", "steps[2]", "steps[3].parallel[0]"}; all || !slices.Equal(left, want) {
		t.Errorf("left out %q, all %v, want %q", left, all, want)
	}
	if got := out.Steps[1].Expect.CEL; got != rollup {
		t.Errorf("what remains of steps[1]: %s", got)
	}
	if got := out.Steps[2]; got.Expect != nil || got.Wait.Text != "2I" {
		t.Errorf("steps[2] keeps its time: %+v", got)
	}
	if out.Steps[3].Parallel[0].Expect != nil || s.Steps[3].Parallel[0].Expect == nil || s.Steps[2].Expect == nil {
		t.Error("the scenario itself was changed, or its copy was not")
	}
	if _, left, all := (&scenario.Scenario{Steps: s.Steps[2:4]}).WithoutMetrics(); len(left) != 2 || !all {
		t.Errorf("only metrics: left out %q, all %v", left, all)
	}
}
