package choose

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// TestAggregatorProfile: an aggregator is judged by what it promises.
func TestAggregatorProfile(t *testing.T) {
	asking := func(profile, form, cel string) *scenario.Scenario {
		return &scenario.Scenario{Contract: form, Topology: scenario.Topology{AggregatorProfile: profile},
			Steps: []scenario.Step{{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: cel, Bound: scenario.D("1I")}}}}
	}
	const rollups, kmsActive, typed = `rollup.degraded.status == "True"`, "kmsActive", scenario.ContractHealthReports
	for name, c := range map[string]struct {
		a       undertest.Aggregator
		backend string
		s       *scenario.Scenario
		profile string // by which it is judged
		lacks   string
	}{
		"this project's":                {undertest.Aggregator{}, "sim", asking(contract.AggregatorConvergence, typed, kmsActive), contract.AggregatorConvergence, ""},
		"this project's in real time":   {undertest.Aggregator{}, "local", asking(contract.AggregatorConvergence, typed, kmsActive), contract.AggregatorConvergence, "take an hour"},
		"another's":                     {undertest.Aggregator{Command: "a", Profile: contract.AggregatorConvergence}, "local", asking(contract.AggregatorConvergence, typed, kmsActive), contract.AggregatorConvergence, ""},
		"another's of rollups":          {undertest.Aggregator{Command: "a"}, "local", asking(contract.AggregatorConvergence, typed, kmsActive), contract.AggregatorConvergence, "has the profile rollups"},
		"rollups of another":            {undertest.Aggregator{Command: "a"}, "local", asking("", typed, rollups), "", ""},
		"without expectations of them":  {undertest.Aggregator{Profile: contract.AggregatorConvergence}, "sim", asking("", typed, kmsActive), contract.AggregatorConvergence, ""},
		"rollups are expected":          {undertest.Aggregator{Profile: contract.AggregatorConvergence}, "sim", asking("", typed, rollups), contract.AggregatorConvergence, "expectations of rollups"},
		"the form that is not read":     {undertest.Aggregator{Profile: contract.AggregatorConvergence}, "sim", asking("", scenario.ContractConditions, kmsActive), contract.AggregatorConvergence, "reads healthreports"},
		"reports of a gone node remain": {undertest.Aggregator{Profile: contract.AggregatorConvergence}, "sim", asking("", typed, `!("cp-3" in report)`), contract.AggregatorConvergence, "expectations of rollups"},
	} {
		f := under(undertest.System{Aggregator: c.a}).Fit(c.s, c.backend)
		lacks := strings.Join(f.Unsupported, "\n")
		if f.Scenario.Topology.AggregatorProfile != c.profile || !strings.Contains(lacks, c.lacks) || (c.lacks == "") != (lacks == "") {
			t.Errorf("%s: judged by %q, lacks %q", name, f.Scenario.Topology.AggregatorProfile, lacks)
		}
	}
}
