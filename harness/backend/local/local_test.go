package local

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func TestLacks(t *testing.T) {
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		s    scenario.Scenario
		want string
	}{
		"nothing":                  {scenario.Scenario{}, ""},
		"nodes":                    {scenario.Scenario{Topology: scenario.Topology{ControlPlanes: 8}}, "at most 7"},
		"operator":                 {scenario.Scenario{Operator: "etcd"}, "expected kubeapiserver"},
		"further":                  {scenario.Scenario{Topology: scenario.Topology{APIServers: scenario.APIServers()}}, ""},
		"further, cold":            {scenario.Scenario{Topology: scenario.Topology{APIServers: scenario.APIServers(), Start: scenario.StartStopped}}, "start: stopped"},
		"further, two aggregators": {scenario.Scenario{Topology: scenario.Topology{APIServers: scenario.APIServers(), Aggregators: 2}}, "several aggregators"},
		"further, nodes": {scenario.Scenario{Topology: scenario.Topology{APIServers: scenario.APIServers()},
			Steps: []scenario.Step{{Action: &scenario.Node{}}}}, "their pods stay"},
		"clock": {scenario.Scenario{Steps: []scenario.Step{{Action: &scenario.Clock{}}}}, "share the clock"},
	} {
		lacks := strings.Join(b.Unsupported(&test.s), "\n")
		if (test.want == "") != (lacks == "") || !strings.Contains(lacks, test.want) {
			t.Errorf("%s: %q, want %q", name, lacks, test.want)
		}
	}
}
