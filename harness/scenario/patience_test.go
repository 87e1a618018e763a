package scenario_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Times of real time within which something is expected grow, and nothing else does.
func TestPatient(t *testing.T) {
	within := func(bound string) *scenario.Expectation {
		return &scenario.Expectation{Mode: scenario.ModeWithin, CEL: "true", Bound: scenario.D(bound)}
	}
	s := &scenario.Scenario{Steps: []scenario.Step{
		{Expect: within("40s")}, {Expect: within("detection")}, {Expect: within("detection + 4s")}, {Parallel: []scenario.Step{{Expect: within("2m")}}},
		{Repeat: &scenario.Repeat{Steps: []scenario.Step{{Expect: within("1s")}}}}, {Expect: &scenario.Expectation{Mode: scenario.ModeHolds, CEL: "true", Bound: scenario.D("5s")}},
	}}
	p := s.Patient(3)
	got := []string{p.Steps[0].Expect.Bound.Text, p.Steps[1].Expect.Bound.Text, p.Steps[2].Expect.Bound.Text, p.Steps[3].Parallel[0].Expect.Bound.Text,
		p.Steps[4].Repeat.Steps[0].Expect.Bound.Text, p.Steps[5].Expect.Bound.Text}
	want := []string{"120s", "detection", "detection + 4s", "6m", "3s", "5s"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("bound %d is %s, expected %s", i, got[i], want[i])
		}
	}
	if s.Steps[0].Expect.Bound.Text != "40s" || s.Steps[4].Repeat.Steps[0].Expect.Bound.Text != "1s" {
		t.Error("the scenario itself was changed")
	}
}
