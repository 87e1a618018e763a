package engine

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

func TestAnActionInWords(t *testing.T) {
	for want, words := range map[string]string{
		"node remove=cp-3": actionLine("node", "", map[string]any{"remove": "cp-3"}),
		"inject plugin cp-2/* fault=hang method=Status": actionLine("inject", "plugin cp-2/*", map[string]any{"method": "Status", "fault": "hang"}),
		"kill etcd": actionLine(scenario.VerbKill, "etcd", nil),
	} {
		if words != want {
			t.Errorf("%q, want %q", words, want)
		}
	}
}
