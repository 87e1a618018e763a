package history

import "time"

// RoleHarness is the program that runs scenarios and records them.
const RoleHarness = "harness"

// Starvation is a time in which the machine gave a process no processor time, although nobody had asked for that. The harness tells of
// its own: then most likely nothing ran on the machine. The process that holds a program in a container tells of that container. A
// stall of a container that somebody had frozen is told as well; whoever reads the history can see that it was frozen.
type Starvation struct {
	// Role, Node, KeyID and Instance are those of the program in the container; Role is RoleHarness for the harness itself.
	Role     string `json:"role"`
	Node     string `json:"node,omitempty"`
	KeyID    string `json:"keyID,omitempty"`
	Instance int    `json:"instance,omitempty"`
	// From is when it should have run, To when it did; Event.At is To.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Queued: a thread of the process could have run and had to wait so long for a processor, while others ran.
	Queued bool `json:"queued,omitempty"`
}
