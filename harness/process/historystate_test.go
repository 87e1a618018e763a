package process

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

func TestHistoryState(t *testing.T) {
	for cause, want := range map[Cause]string{
		CauseStart: history.ProcessStarted, CausePause: history.ProcessPaused, CauseResume: history.ProcessResumed,
		CauseStop: history.ProcessStopped, CauseKill: history.ProcessKilled, CauseCrash: history.ProcessExited,
	} {
		if got := (Change{Cause: cause}).HistoryState(); got != want {
			t.Errorf("%s: %s, want %s", cause, got, want)
		}
	}
}
