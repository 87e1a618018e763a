package check

import (
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
