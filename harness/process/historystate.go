package process

import (
	"cmp"

	"github.com/kmsharness/kmsharness/harness/history"
)

// historyStates are the history's words for what happened to a process. Ready is not among them: that a program answers is for others to say.
var historyStates = map[Cause]string{
	CauseStart: history.ProcessStarted, CausePause: history.ProcessPaused, CauseResume: history.ProcessResumed,
	CauseStop: history.ProcessStopped, CauseKill: history.ProcessKilled, CauseCrash: history.ProcessExited,
}

// HistoryState is the history's word for what happened to a process.
func (c Change) HistoryState() string { return cmp.Or(historyStates[c.Cause], history.ProcessExited) }
