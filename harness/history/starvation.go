package history

import "time"

// RoleHarness is the program that runs scenarios and records them.
const RoleHarness = "harness"

// Starvation is a time in which a process could have run and got no processor. If it is the harness, most likely nothing ran on the machine.
type Starvation struct {
	// Role is RoleHarness for the harness itself. Node is empty where it is not known.
	Role string `json:"role"`
	Node string `json:"node,omitempty"`
	// From is when it should have run, To when it did; Event.At is To.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}
