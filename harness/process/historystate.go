package process

import "github.com/kmsharness/kmsharness/harness/history"

// HistoryState is the history's word for what happened to a process. Ready is not among them: that a program answers is
// for others to say.
func (c Change) HistoryState() string {
	switch c.Cause {
	case CauseStart:
		return history.ProcessStarted
	case CausePause:
		return history.ProcessPaused
	case CauseResume:
		return history.ProcessResumed
	case CauseStop:
		return history.ProcessStopped
	case CauseKill:
		return history.ProcessKilled
	default:
		return history.ProcessExited
	}
}
