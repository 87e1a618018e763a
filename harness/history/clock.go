package history

import "time"

// Modes of a clock that a scenario sets.
const (
	ClockAhead   = "ahead"
	ClockBehind  = "behind"
	ClockRestore = "restore"
)

// Clock is a clock that was set: from now on it is Ahead of the true time, or behind it if that is negative. It is that of a node,
// by which its reporter goes, or with role aggregator that of the aggregators. All times of a history are true.
type Clock struct {
	Role  string        `json:"role,omitempty"`
	Node  string        `json:"node,omitempty"`
	Ahead time.Duration `json:"ahead"`
}
