package scenario

import (
	"strings"
	"testing"
)

func TestOfAnyPlugin(t *testing.T) {
	const cel = `rollup.degraded.reason == "PluginUnhealthy" && rollup.available.reason == "AsExpected" && reports.all(r, r.status == "unhealthy" && r.detail.contains("unreachable"))`
	const want = `rollup.degraded.status == "True" && rollup.available.reason == "AsExpected" && reports.all(r, r.status != "healthy" && r.detail != "")`
	s := &Scenario{Steps: []Step{{Action: &KMS{Op: KMSCut}}, {Expect: &Expectation{Mode: ModeWithin, CEL: cel, Bound: D("1I")}}}}
	out, changed := s.OfAnyPlugin()
	if got := out.Steps[1].Expect.CEL; got != want || strings.Join(changed, " ") != "steps[1]" || s.Steps[1].Expect.CEL != cel {
		t.Errorf("%s (%v)", got, changed)
	}
	s.Steps = s.Steps[1:] // no action on the KMS: the fault is the harness's own, and so are its words
	if _, changed := s.OfAnyPlugin(); changed != nil {
		t.Error(changed)
	}
}
