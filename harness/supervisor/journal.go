package supervisor

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// Line is one line of the journal: a change of state of the program, in the words of the history (history.Process*).
// "ready" is not among them, because the supervisor does not know what it runs.
type Line struct {
	Time  time.Time `json:"time"`
	State string    `json:"state"`
	PID   int       `json:"pid,omitempty"`
	// ExitCode is set when the program ended; see State.ExitCode.
	ExitCode *int `json:"exitCode,omitempty"`
	// Detail says in words how it ended.
	Detail string `json:"detail,omitempty"`
}

// DecodeLine reads a line: when the program changed, and how. It has neither role nor node: a supervisor does not know them. A line is written before the
// control API answers, so every effect of an answered request is in the file.
func DecodeLine(line []byte) (at time.Time, p history.Process, err error) {
	var l Line
	if err := json.Unmarshal(line, &l); err != nil {
		return at, p, fmt.Errorf("journal of the supervisor: %w", err)
	}
	switch l.State {
	case history.ProcessStarted, history.ProcessPaused, history.ProcessResumed,
		history.ProcessStopped, history.ProcessKilled, history.ProcessExited:
	default:
		return at, p, fmt.Errorf("journal of the supervisor: %q is no change of a process", l.State)
	}
	if l.Time.IsZero() || l.PID <= 0 {
		return at, p, fmt.Errorf("journal of the supervisor: not a change: time or pid is missing")
	}
	return l.Time, history.Process{PID: l.PID, State: l.State, Detail: l.Detail}, nil
}

// lineOf is the line that tells of a change.
func lineOf(c process.Change) Line {
	l := Line{Time: c.Time.UTC(), State: c.HistoryState(), PID: c.PID}
	if c.Exit != nil {
		code := exitCode(*c.Exit)
		l.ExitCode, l.Detail = &code, c.Exit.String()
	}
	return l
}

// exitCode is what a container reports of a process that ended this way.
func exitCode(e process.Exit) int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

// journal is a file of lines, appended: the containers of one pod that follow each other share it.
type journal struct {
	file *os.File

	mu  sync.Mutex
	err error // the first line that could not be written
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--journal: %w", err)
	}
	return &journal{file: f}, nil
}

// write appends a line in one write, so that a reader never sees half of it.
func (j *journal) write(l Line) {
	b, err := json.Marshal(l)
	if err == nil {
		_, err = j.file.Write(append(b, '\n'))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil && j.err == nil {
		j.err = fmt.Errorf("the journal misses the line %q of %s: %w", l.State, l.Time.Format(time.RFC3339Nano), err)
	}
}

// Err is set when the journal is not complete.
func (j *journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// both writes to two places and never fails: a full disk may cost lines, but not stop the program at its next one.
type both [2]io.Writer

func (b both) Write(p []byte) (int, error) {
	for _, w := range b {
		_, _ = w.Write(p)
	}
	return len(p), nil
}
