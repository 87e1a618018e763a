package process

import (
	"cmp"
	"fmt"
	"syscall"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// State of a child process.
type State string

// The states of a process; Exited is final.
const (
	Running State = "running"
	Paused  State = "paused"
	Exited  State = "exited"
)

// Cause says who wanted a change of state.
type Cause string

// Causes of changes. A process that ends without Stop or Kill has crashed, also with exit code 0.
const (
	CauseStart  Cause = "start"
	CauseStop   Cause = "stop"
	CauseKill   Cause = "kill"
	CausePause  Cause = "pause"
	CauseResume Cause = "resume"
	CauseCrash  Cause = "crash"
)

// Change is one change of the state of a process.
type Change struct {
	Time  time.Time
	Name  string
	PID   int
	State State
	Cause Cause
	// Exit is set when State is Exited.
	Exit *Exit
	// Output is the end of its log, if it has crashed and has one.
	Output string
}

// historyStates are the history's words for what happened to a process. Ready is not among them: that a program answers is for others to say.
var historyStates = map[Cause]string{
	CauseStart: history.ProcessStarted, CausePause: history.ProcessPaused, CauseResume: history.ProcessResumed,
	CauseStop: history.ProcessStopped, CauseKill: history.ProcessKilled, CauseCrash: history.ProcessExited,
}

// HistoryState is the history's word for what happened to a process.
func (c Change) HistoryState() string { return cmp.Or(historyStates[c.Cause], history.ProcessExited) }

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code, -1 if a signal ended the process.
	Code int
	// Signal that ended the process; 0 if it exited by itself.
	Signal syscall.Signal
	// Cause is CauseStop, CauseKill or CauseCrash.
	Cause Cause
	// Forced says that the process ignored SIGTERM for its StopTimeout and was killed.
	Forced bool
}

func (e Exit) String() string {
	how := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != 0 {
		how = "signal " + e.Signal.String()
	}
	if e.Forced {
		how += " after it ignored SIGTERM"
	}
	return how
}
