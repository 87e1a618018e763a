package choose

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
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
	out, left, all := withoutMetrics(s)
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
	if _, left, all := withoutMetrics(&scenario.Scenario{Steps: s.Steps[2:4]}); len(left) != 2 || !all {
		t.Errorf("only metrics: left out %q, all %v", left, all)
	}
}

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
		out, changed := withLastKey(s)
		if got := out.Steps[0].Expect.CEL; got != test.want || (len(changed) == 1) != (test.cel != test.want) {
			t.Errorf("%s: %s, changed %v", test.cel, got, changed)
		}
	}
}

// Times of real time within which something is expected grow, and nothing else does.
func TestPatient(t *testing.T) {
	within := func(bound string) *scenario.Expectation {
		return &scenario.Expectation{Mode: scenario.ModeWithin, CEL: "true", Bound: scenario.D(bound)}
	}
	s := &scenario.Scenario{Steps: []scenario.Step{
		{Expect: within("40s")}, {Expect: within("detection")}, {Expect: within("detection + 4s")}, {Parallel: []scenario.Step{{Expect: within("2m")}}},
		{Repeat: &scenario.Repeat{Steps: []scenario.Step{{Expect: within("1s")}}}}, {Expect: &scenario.Expectation{Mode: scenario.ModeHolds, CEL: "true", Bound: scenario.D("5s")}},
	}}
	p := patient(s, 3)
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

func TestOfAnyPlugin(t *testing.T) {
	const cel = `rollup.degraded.reason == "PluginUnhealthy" && rollup.available.reason == "AsExpected" && reports.all(r, r.status == "unhealthy" && r.detail.contains("unreachable"))`
	const want = `rollup.degraded.status == "True" && rollup.available.reason == "AsExpected" && reports.all(r, r.status != "healthy" && r.detail != "")`
	s := &scenario.Scenario{Steps: []scenario.Step{{Action: &scenario.KMS{Op: scenario.KMSCut}}, {Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: cel, Bound: scenario.D("1I")}}}}
	out, changed := ofAnyPlugin(s)
	if got := out.Steps[1].Expect.CEL; got != want || strings.Join(changed, " ") != "steps[1]" || s.Steps[1].Expect.CEL != cel {
		t.Errorf("%s (%v)", got, changed)
	}
	s.Steps = s.Steps[1:] // no action on the KMS: the fault is the harness's own, and so are its words
	if _, changed := ofAnyPlugin(s); changed != nil {
		t.Error(changed)
	}
}

// TestStatusesOnly: no expectation of the catalogue demands a reason of an aggregator that need not share it, all still parse, and what must never have a
// reason may have its status.
func TestStatusesOnly(t *testing.T) {
	p, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.Load("../../../scenarios/catalogue")
	if err != nil {
		t.Fatal(err)
	}
	reason := regexp.MustCompile(`(rollup|clusterOperator)\.[a-z]+\.reason`)
	for _, s := range all {
		before, _ := s.Encode()
		out, changed := statusesOnly(s)
		text, err := out.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := s.Encode(); string(again) != string(before) {
			t.Errorf("%s: it was changed itself", s.Name)
		}
		if found := reason.FindString(string(text)); found != "" {
			t.Errorf("%s: %s is left", s.Name, found)
		}
		if wants := reason.Match(before); wants != (len(changed) > 0) {
			t.Errorf("%s: changed %v", s.Name, changed)
		}
		file := filepath.Join(t.TempDir(), s.Name+".yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Load(file); err != nil {
			t.Error(err)
		}
		if s.Name == "load-balancer-not-ready" && !slices.ContainsFunc(changed, func(at string) bool { return strings.HasPrefix(at, "steps[") }) {
			t.Errorf("%s: changed %v", s.Name, changed)
		}
	}
}
