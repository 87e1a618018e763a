package scenario_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestAnActionOnALine(t *testing.T) {
	for want, a := range map[string]scenario.Action{
		"node remove=cp-3": &scenario.Node{Remove: "cp-3"},
		"inject plugin cp-2/* fault=hang method=Status": &scenario.Inject{Plugin: scenario.Selector{Node: "cp-2"}, Fault: "hang", Method: "Status"},
		"kill process etcd":                             &scenario.Process{Do: scenario.VerbKill, Target: scenario.Selector{Role: "etcd"}},
	} {
		if line := scenario.Line(a, nil); line != want {
			t.Errorf("%q, want %q", line, want)
		}
	}
}
