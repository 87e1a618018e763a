package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// A scenario that cannot pass leaves two pictures: the first has what failed, the second what healing made of it.
func TestArtifactsOfAFailure(t *testing.T) {
	b := newBackend(t, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), smokeTimeout)
	defer cancel()
	s := scenario.Scenario{Name: "unmet", Title: "It cannot pass.", Area: "plugin", Topology: scenario.Topology{ControlPlanes: 1}, Steps: []scenario.Step{
		{Action: &scenario.Inject{Plugin: scenario.Selector{Node: "cp-1"}, Method: "Status", Fault: "hang"}},
		{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: `rollup.degraded.status == "True"`, Bound: scenario.D("detection")}},
		{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: `rollup.degraded.reason == "Nonsense"`, Bound: scenario.D("1I")}},
	}}
	r := engine.Execute(ctx, b, s.WithDefaults(), engine.Execution{Out: t.TempDir(), Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Seed: 1}})
	if r.Status != result.Failed || len(r.Notes) > 0 {
		t.Fatalf("%s", r.Text())
	}
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(r.Dir, result.ArtifactsDir, file))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	const operator = "kubeapiservers.operator.openshift.io.yaml"
	if text := read("at-failure/" + operator); !strings.Contains(text, "PluginUnreachable") {
		t.Errorf("the operator CR at the failure does not show it:\n%s", text)
	}
	for file, want := range map[string]string{
		operator: contract.ConditionType("cp-1"), "clusteroperators.config.openshift.io.yaml": "type: Degraded", "apiservers.config.openshift.io.yaml": "type: KMS",
		"nodes.yaml": "name: cp-1", "leases.coordination.k8s.io.yaml": "kind: LeaseList", "encryption-cp-1.yaml": "name: kms-1",
	} {
		if text := read("at-end/" + file); !strings.Contains(text, want) {
			t.Errorf("%s has no %q:\n%s", file, want, text)
		}
	}
}
