package live

import (
	"context"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Unit is a place for one process at a time: one that was stopped or killed stays away until it is started.
type Unit interface {
	// Start starts it unless it runs, and returns when it answers.
	Start(ctx context.Context) error
	// Stop asks it to end and waits, Kill does not ask. Both are content with one that is gone already.
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	// Pause and Resume stop and continue it as a whole; it keeps its connections.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Status() Status
}

// Status of a unit.
type Status struct {
	Phase Phase
	PID   int
	// Crashed: it has ended, and nobody asked it to.
	Crashed bool
}

// Phase of a unit's life.
type Phase int

// Phases.
const (
	Never Phase = iota // not started so far
	Running
	Paused
	Ended
)

// Running says whether there is a process, paused or not.
func (s Status) Running() bool { return s.Phase == Running || s.Phase == Paused }

// Target is a unit with what the history calls it.
type Target struct {
	Unit
	Identity history.Process
}
