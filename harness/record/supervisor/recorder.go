// Package supervisor converts the journal of a kmsharness-supervisor to changes of processes and CPU starvation of the
// history.
//
// The supervisor writes a line before its control API answers, so every effect of an answered request is in the file.
// harness/record/tail reads the file; the caller names the process. ProcessReady is not recorded here, because a
// supervisor cannot observe readiness.
package supervisor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

// Change is what one line tells: a change of a process, or a stall. It has neither role nor node: a supervisor does not know them.
type Change struct {
	At         time.Time
	Process    history.Process
	Starvation *history.Starvation // nil: a change of the process
}

// Of is the payload for the history, given whose it is.
func (c Change) Of(identity history.Process) any {
	if c.Starvation != nil {
		return &history.Starvation{Role: identity.Role, Node: identity.Node, KeyID: identity.KeyID, Instance: identity.Instance, From: c.Starvation.From, To: c.Starvation.To}
	}
	p := identity
	p.PID, p.State, p.Detail = c.Process.PID, c.Process.State, c.Process.Detail
	return &p
}

// Decode reads one line.
func Decode(line []byte) (Change, error) {
	var l supervisor.Line
	if err := json.Unmarshal(line, &l); err != nil {
		return Change{}, fmt.Errorf("journal of the supervisor: %w", err)
	}
	switch l.State {
	case supervisor.Starved:
		return starved(l)
	case history.ProcessStarted, history.ProcessPaused, history.ProcessResumed,
		history.ProcessStopped, history.ProcessKilled, history.ProcessExited:
	default:
		return Change{}, fmt.Errorf("journal of the supervisor: %q is no change of a process", l.State)
	}
	if l.Time.IsZero() || l.PID <= 0 {
		return Change{}, fmt.Errorf("journal of the supervisor: not a change: time or pid is missing")
	}
	return Change{At: l.Time, Process: history.Process{PID: l.PID, State: l.State, Detail: l.Detail}}, nil
}

func starved(l supervisor.Line) (Change, error) {
	if l.From == nil || l.From.IsZero() || !l.From.Before(l.Time) {
		return Change{}, fmt.Errorf("journal of the supervisor: not a stall: it does not begin before its end")
	}
	return Change{At: l.Time, Starvation: &history.Starvation{From: *l.From, To: l.Time}}, nil
}

// Recorder records the journal of one container.
type Recorder struct {
	Sink record.Sink
	// Identity of the program: role, node, keyID, instance.
	Identity history.Process
}

// Line records one line.
func (r *Recorder) Line(line []byte) error {
	change, err := Decode(line)
	if err != nil {
		return err
	}
	r.Sink.Record(change.At, "supervisor/"+r.Identity.Role+"/"+r.Identity.Node, change.Of(r.Identity))
	return nil
}
