package hold

import "time"

// States of the program. The last three are without a process.
const (
	Waiting = "waiting" // not started yet: for the URL of --wait-for
	Running = "running"
	Paused  = "paused"
	Stopped = "stopped" // ended, or never started, on request; stays down until it is started
	Killed  = "killed"  // the same, by SIGKILL
	Exited  = "exited"  // ended by itself; the container ends too
)

// State is the program at one instant.
type State struct {
	State string `json:"state"`
	// PID in the container's own namespace; 0 without a process.
	PID int `json:"pid"`
	// Starts of the program since the container started.
	Starts int `json:"starts"`
	// ExitCode of the last process as a container reports it: 128 + n after signal n. Nil while there was none, or it lives.
	ExitCode *int `json:"exitCode,omitempty"`
	// Since is when the program came into this state.
	Since time.Time `json:"since"`
}

// alive says whether there is a process.
func (s State) alive() bool { return s.State == Running || s.State == Paused }
