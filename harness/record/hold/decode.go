// Package hold turns the journal of a kmsharness-hold into the history's changes of processes.
//
// A line is written before the control API answers: what a caller has brought about is in the file. What does not live
// here: the reading of the file (harness/record/tail), whose process it is (the caller says), and ProcessReady, which no
// supervisor can know.
package hold

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/hold"
)

// Decode reads one line. The process has neither role nor node: a hold does not know them.
func Decode(line []byte) (at time.Time, p history.Process, err error) {
	var l hold.Line
	if err := json.Unmarshal(line, &l); err != nil {
		return at, p, fmt.Errorf("journal of hold: %w", err)
	}
	switch l.State {
	case history.ProcessStarted, history.ProcessPaused, history.ProcessResumed,
		history.ProcessStopped, history.ProcessKilled, history.ProcessExited:
	default:
		return at, p, fmt.Errorf("journal of hold: %q is no change of a process", l.State)
	}
	if l.Time.IsZero() || l.PID <= 0 {
		return at, p, fmt.Errorf("journal of hold: not a change: time or pid is missing")
	}
	return l.Time, history.Process{PID: l.PID, State: l.State, Detail: l.Detail}, nil
}
