package choose

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

func under(s undertest.System) Options {
	return Options{Options: local.Options{System: s}}
}

// TestFit: what a system under test does not have is named, and the rest of a scenario is judged.
func TestFit(t *testing.T) {
	step := func(cel string) scenario.Step {
		return scenario.Step{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: cel, Bound: scenario.D("1I")}}
	}
	typed := &scenario.Scenario{Contract: scenario.ContractHealthReports, Steps: []scenario.Step{step("kmsActive"), step(`metrics.size() == 0`)}}
	conditions := &scenario.Scenario{Contract: scenario.ContractConditions, Steps: []scenario.Step{step(`metrics.size() == 0`)}}
	refuse := &scenario.Scenario{Steps: []scenario.Step{{Action: &scenario.Refuse{Role: history.RoleReporter, Mode: history.RefuseForbidden}}}}
	oneForm := under(undertest.System{Reporter: undertest.Reporter{Command: "r --node {node} --metrics {metricsAddress}"}})
	bare := under(undertest.System{Reporter: undertest.Reporter{Command: "r --contract {contract}"}})
	admin := under(undertest.System{Reporter: undertest.Reporter{Identity: history.IdentityAdmin}})
	for name, c := range map[string]struct {
		o            Options
		form         string
		s            *scenario.Scenario
		lacks, notes string
	}{
		"this project's":         {Options{}, scenario.ContractConditions, typed, "", ""},
		"its own form":           {oneForm, scenario.ContractHealthReports, typed, "", ""},
		"the other form":         {oneForm, scenario.ContractConditions, typed, "it writes conditions only", ""},
		"both forms, no metrics": {bare, scenario.BothContracts, typed, "", "in steps[1] is not judged"},
		"metrics alone":          {bare, scenario.ContractConditions, conditions, "given no {metricsAddress}", ""},
		"administrators":         {admin, scenario.ContractConditions, refuse, "they are administrators", ""},
		"least privilege":        {Options{}, scenario.ContractConditions, refuse, "", ""},
	} {
		o, err := c.o.InForm(c.form)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f := o.Fit(c.s, "local")
		lacks, notes := strings.Join(f.Unsupported, "\n"), strings.Join(f.Notes, "\n")
		if !strings.Contains(lacks, c.lacks) || (c.lacks == "") != (lacks == "") || !strings.Contains(notes, c.notes) || (c.notes == "") != (notes == "") {
			t.Errorf("%s: lacks %q, notes %q", name, lacks, notes)
		}
	}
	if _, err := oneForm.InForm(scenario.BothContracts); err == nil || !strings.Contains(err.Error(), "expected conditions or healthreports") {
		t.Errorf("one form for both: %v", err)
	}
}

// TestLacksUnion: what a scenario asks of the union needs a place in the command of another aggregator.
func TestLacksUnion(t *testing.T) {
	asking := func(c scenario.ClusterOperator) *scenario.Scenario { return &scenario.Scenario{ClusterOperator: c} }
	inertia := scenario.ClusterOperator{DegradedInertia: []string{"2m"}}
	for _, c := range []struct {
		command string
		s       *scenario.Scenario
		want    string
	}{
		{"", asking(inertia), ""},
		{"mine", asking(scenario.ClusterOperator{}), ""},
		{"mine", asking(inertia), "clusterOperator.degradedInertia: aggregator.command has no {degradedInertia}"},
		{"mine --inertia {degradedInertia}", asking(inertia), ""},
	} {
		if got := strings.Join(under(undertest.System{Aggregator: undertest.Aggregator{Command: c.command}}).Fit(c.s, "local").Unsupported, "; "); got != c.want {
			t.Errorf("%q with %+v: %q, want %q", c.command, c.s.ClusterOperator, got, c.want)
		}
	}
}

// TestLacksConnectivity: a reporter that cannot be told to fail over is not judged by whether it does.
func TestLacksConnectivity(t *testing.T) {
	failingOver := &scenario.Scenario{Topology: scenario.Topology{Connectivity: history.ConnectAltSvc}}
	balanced := &scenario.Scenario{Topology: scenario.Topology{Connectivity: history.ConnectService}}
	for _, c := range []struct {
		command string
		s       *scenario.Scenario
		want    string
	}{
		{"", failingOver, ""},
		{"mine {metricsAddress}", balanced, ""},
		{"mine {metricsAddress} --way {connectivity}", failingOver, ""},
		{"mine {metricsAddress}", failingOver, "connectivity altsvc: the reporter under test is given no {connectivity}"},
	} {
		if got := strings.Join(under(undertest.System{Reporter: undertest.Reporter{Command: c.command}}).Fit(c.s, "local").Unsupported, "; "); got != c.want {
			t.Errorf("%q with %s: %q, want %q", c.command, c.s.Topology.Connectivity, got, c.want)
		}
	}
	listed := &scenario.Scenario{Topology: scenario.Topology{AggregatorConnectivity: history.ConnectStatic}}
	for command, want := range map[string]string{
		"": "", "mine --list {alternatives}": "", "mine {connectivity}": "aggregatorConnectivity static: the aggregator under test is given no {alternatives}",
	} {
		if got := strings.Join(under(undertest.System{Aggregator: undertest.Aggregator{Command: command}}).Fit(listed, "local").Unsupported, "; "); got != want {
			t.Errorf("aggregator %q: %q, want %q", command, got, want)
		}
	}
}

// TestSourceOnly: house rules bind this project's programs, and those of others if somebody says so.
func TestSourceOnly(t *testing.T) {
	other := under(undertest.System{Aggregator: undertest.Aggregator{Command: "a"}})
	strict := other
	strict.Strict = true
	if (Options{}).SourceOnly() || !other.SourceOnly() || strict.SourceOnly() || !under(undertest.System{Reporter: undertest.Reporter{Image: "i"}}).SourceOnly() {
		t.Error("who is judged by sources alone")
	}
}
