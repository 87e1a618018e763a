package check

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

// A plugin that an operator starts anew with other settings keeps its place: its end is no end.
func TestPluginStartedAnew(t *testing.T) {
	started := pluginStopped()
	started.State = history.ProcessStarted
	v := Run(operated(extra(toldAll("identity", "kms-9"), toldAll("identity", "kms-9"), pluginStopped(), started))())
	for _, f := range v.Invariants {
		if f.ID == "SWITCH-ORDER" && (f.Judged == 0 || len(f.Violations) > 0) {
			t.Errorf("judged %d, %+v", f.Judged, f.Violations)
		}
	}
}

// A plugin ends with its pod, also when the run ends before the next pod has come. Without a word that the API server is to end, it is the plugin's own end.
func TestPodCutOffByTheEnd(t *testing.T) {
	for state, want := range map[string]int{history.ProcessStopping: 0, history.ProcessStopped: 1} {
		server := &history.Process{Role: history.RoleAPIServer, Node: "cp-1", State: state}
		v := Run(operated(extra(toldAll("identity", "kms-9"), server, pluginStopped()))())
		for _, f := range v.Invariants {
			if f.ID == "SWITCH-ORDER" && len(f.Violations) != want {
				t.Errorf("%s: %+v, want %d violations", state, f.Violations, want)
			}
		}
	}
}

// A plugin ends with its pod, whatever its API server has loaded, when the next pod has it again.
func TestPodMadeAnewWithItsPlugin(t *testing.T) {
	started, ready := pluginStopped(), pluginStopped()
	started.State, ready.State = history.ProcessStarted, history.ProcessReady
	v := Run(operated(extra(toldAll("identity", "kms-9"), started, ready, rolled(pluginStopped(), started, ready)))())
	for _, f := range v.Invariants {
		if f.ID == "SWITCH-ORDER" && (f.Judged == 0 || len(f.Violations) > 0) {
			t.Errorf("judged %d, %+v", f.Judged, f.Violations)
		}
	}
	for _, note := range v.Notes {
		if strings.Contains(note, "no action asked for that") {
			t.Error(note)
		}
	}
}
