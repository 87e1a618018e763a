package scenario

import (
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// VerbClock sets the clock of a node or of the aggregators.
const VerbClock Verb = "clock"

// Clock sets the clock of a node, or of the aggregators.
type Clock struct {
	Node string `yaml:"node,omitempty" target:"true" refers:"nodes"`
	Role string `yaml:"role,omitempty" target:"true" enum:"aggregator"` // empty: a node's
	Mode string `yaml:"mode" required:"true" enum:"ahead,behind,restore"`
	// By is how far from the true time.
	By Duration `yaml:"by,omitempty" with:"mode=ahead,behind" needed:"2I"`
}

// Verb implements Action.
func (*Clock) Verb() Verb { return VerbClock }

func (c *Clock) target([]string) string {
	return strings.TrimSpace("clock " + Selector{Role: c.Role, Node: c.Node}.processes())
}

// Describe implements Action.
func (c *Clock) Describe() string {
	return string(VerbClock) + " " + Selector{Role: c.Role, Node: c.Node}.describeProcesses() + parameters(c)
}

// Undo implements Undoable.
func (c *Clock) Undo() Action {
	if c.Mode == history.ClockRestore {
		return nil
	}
	return &Clock{Node: c.Node, Role: c.Role, Mode: history.ClockRestore}
}

func (c *Clock) check(v *validation, at place) {
	switch {
	case c.Role == "" && c.Node == "":
		v.add(at, "a clock of nobody, expected a node, or role: aggregator")
	case c.Role != "" && c.Node != "":
		v.add(at.at("node"), "a node beside role aggregator, expected one of them: aggregators have a clock of their own")
	}
}
