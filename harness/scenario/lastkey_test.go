package scenario_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// What is expected of the reports of an old key is left out, and nothing else.
func TestWithLastKey(t *testing.T) {
	for _, test := range []struct{ cel, want string }{
		{`data.under["kms-2"] > 3 && reports.size() == 3 && operator.stage == ""`, `data.under["kms-2"] > 3 && operator.stage == ""`},
		{`encryption["cp-5"] == ["kms-2", "identity"] && data.lost == 0`, `data.lost == 0`},
		{`data.lost == 0 && !("1" in report["cp-1"])`, `data.lost == 0`},
		{`process["plugin"].all(p, process["plugin"][p] == "stopped") && data.lost == 0`, `data.lost == 0`},
		{`reports.size() > 0 && data.lost == 0`, `reports.size() > 0 && data.lost == 0`},
	} {
		s := &scenario.Scenario{Steps: []scenario.Step{{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: test.cel, Bound: scenario.D("1s")}}}}
		out, changed := s.WithLastKey()
		if got := out.Steps[0].Expect.CEL; got != test.want || (len(changed) == 1) != (test.cel != test.want) {
			t.Errorf("%s: %s, changed %v", test.cel, got, changed)
		}
	}
}
