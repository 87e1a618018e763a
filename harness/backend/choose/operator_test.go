package choose_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/local"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// What OpenShift's API has no place for is not asked of an operator under test, and nor is what this project's operator alone says.
func TestFitOfOperator(t *testing.T) {
	for _, o := range []choose.Options{
		{Options: local.Options{System: undertest.System{Operator: undertest.Operator{Command: "operator --kubeconfig {kubeconfig}", Patience: 2}}}},
		{Options: local.Options{System: undertest.System{Operator: undertest.Operator{Image: "operator:dev", Patience: 2}}}},
	} {
		t.Run(o.Operator.Implementation().Name, func(t *testing.T) { fitOfOperator(t, o) })
	}
}

func fitOfOperator(t *testing.T, o choose.Options) {
	operated := func(change func(*scenario.Scenario)) *scenario.Scenario {
		s := &scenario.Scenario{Topology: scenario.Topology{Lifecycle: scenario.LifecycleOperator}, Steps: []scenario.Step{
			{Action: &scenario.APIServer{Type: scenario.TypeKMS, Sections: map[string]map[string]any{"vault": {}}}},
			{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: `data.lost == 0 && reports.size() == 3`, Bound: scenario.D("40s")}},
		}}
		if change != nil {
			change(s)
		}
		return s
	}
	f := o.Fit(operated(nil), "local")
	if e := f.Scenario.Steps[1].Expect; len(f.Unsupported) > 0 || e.CEL != "data.lost == 0" || e.Bound.Text != "80s" || len(f.Notes) != 2 || !f.Scenario.LastKeyStays {
		t.Errorf("%+v, %v, %v", e, f.Unsupported, f.Notes)
	}
	if f := o.Fit(&scenario.Scenario{Labels: []string{"own-operator"}}, "local"); len(f.Unsupported)+len(f.Notes) > 0 {
		t.Errorf("without an operator: %v, %v", f.Unsupported, f.Notes)
	}
	for want, change := range map[string]func(*scenario.Scenario){
		"operators of aggregated API servers": func(s *scenario.Scenario) {
			s.Topology.APIServers = []string{"kube-apiserver", "oauth-apiserver"}
		},
		"apiserver.aws": func(s *scenario.Scenario) {
			s.Steps[0].Action = &scenario.APIServer{Type: scenario.TypeKMS, Sections: map[string]map[string]any{"aws": {}}}
		},
		"release older": func(s *scenario.Scenario) {
			s.Steps[0].Action = &scenario.Process{Target: scenario.Selector{Role: "operator"}, Release: "older"}
		},
		"KMSPluginCredentialsPending": func(s *scenario.Scenario) {
			s.Steps[1].Expect.CEL = `conditions["KMSPluginCredentialsPending"].status == "True"`
		},
		"decision of this project's operator": func(s *scenario.Scenario) { s.Labels = []string{"own-operator"} },
	} {
		if got := strings.Join(o.Fit(operated(change), "local").Unsupported, "\n"); !strings.Contains(got, want) {
			t.Errorf("unsupported: %q, expected %q", got, want)
		}
	}
}

// An operator under test has the name of its image or of its program, and house rules do not fail it.
func TestOperatorUnderTest(t *testing.T) {
	for want, o := range map[string]choose.Options{
		"":              {},
		"my-operator":   {Options: local.Options{System: undertest.System{Operator: undertest.Operator{Command: "/bin/my-operator --kubeconfig {kubeconfig}"}}}},
		"quay.io/o:dev": {Options: local.Options{System: undertest.System{Operator: undertest.Operator{Image: "quay.io/o:dev"}}}},
	} {
		if got := o.Operator.Implementation().String(); got != want || o.SourceOnly() != (want != "") {
			t.Errorf("operator %q, judged by sources alone: %t; want operator %q", got, o.SourceOnly(), want)
		}
	}
}

// An operator that installs revisions itself cannot be given pods of other revisions.
func TestFitOfFullOperator(t *testing.T) {
	for _, action := range []scenario.Action{&scenario.Rollback{}, &scenario.Node{}} {
		s := &scenario.Scenario{Topology: scenario.Topology{Lifecycle: scenario.LifecycleOperator}, Steps: []scenario.Step{{Action: action}}}
		for scope, want := range map[string]int{undertest.ScopeEncryption: 0, undertest.ScopeFull: 1} {
			o := choose.Options{Options: local.Options{System: undertest.System{Operator: undertest.Operator{Command: "operator", Scope: scope}}}}
			f := o.Fit(s, "local")
			if len(f.Unsupported) != want {
				t.Errorf("%s with scope %s: unsupported %q, want %d", scenario.VerbOf(action), scope, f.Unsupported, want)
			}
			if left := f.Scenario.ClusterOperator.Union().Leave; left != (scope == undertest.ScopeFull) || s.ClusterOperator.Left {
				t.Errorf("%s with scope %s: the ClusterOperator is left to the operator: %t, and %t in the scenario itself", scenario.VerbOf(action), scope, left, s.ClusterOperator.Left)
			}
		}
	}
}

// A full operator has rules of its own for the ClusterOperator.
func TestFitOfFullOperatorWithInertia(t *testing.T) {
	o := choose.Options{Options: local.Options{System: undertest.System{Operator: undertest.Operator{Command: "operator", Scope: undertest.ScopeFull}}}}
	for want, rules := range map[int]scenario.ClusterOperator{0: {}, 1: {DegradedInertia: []string{"1m"}}} {
		s := &scenario.Scenario{Topology: scenario.Topology{Lifecycle: scenario.LifecycleOperator}, ClusterOperator: rules}
		if f := o.Fit(s, "local"); len(f.Unsupported) != want {
			t.Errorf("%+v: unsupported %q, want %d reasons", rules, f.Unsupported, want)
		}
	}
}

// On kind every step of an operator is a revision of the pods, whoever the operator is.
func TestOperatorsHaveMoreTimeOnKind(t *testing.T) {
	s := &scenario.Scenario{Topology: scenario.Topology{Lifecycle: scenario.LifecycleOperator}, Steps: []scenario.Step{
		{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: "data.lost == 0", Bound: scenario.D("10s")}},
	}}
	for _, test := range []struct {
		asked         int
		backend, want string
	}{{0, "local", "10s"}, {0, "kind", "80s"}, {9, "kind", "90s"}, {3, "local", "30s"}} {
		f := choose.Options{Options: local.Options{System: undertest.System{Operator: undertest.Operator{Patience: test.asked}}}}.Fit(s, test.backend)
		if got := f.Scenario.Steps[0].Expect.Bound.Text; got != test.want || (len(f.Notes) > 0) != (test.want != "10s") {
			t.Errorf("on %s, asked for %d: within %s, %v, want %s", test.backend, test.asked, got, f.Notes, test.want)
		}
	}
}
