package scenario

import (
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
)

// VerbClock sets the clock of a node or of the aggregators.
const VerbClock Verb = "clock"

// Clock sets the clock of a node, or of the aggregators.
type Clock struct {
	Node string
	Role string // aggregator, or empty for a node's
	// Mode is ahead, behind or restore.
	Mode string
	// By is how far from the true time.
	By Duration
}

// Verb implements Action.
func (*Clock) Verb() Verb { return VerbClock }

func (c *Clock) fields() []field {
	role := keywordField(&c.Role, history.RoleAggregator)
	role.check = nil // below
	return append(ofTarget(optional("node", nodeField(&c.Node)), optional("role", role)),
		required("mode", keywordField(&c.Mode, clockModes()...)), optional("by", durationField(&c.By)))
}

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

func clockModes() []string {
	return []string{history.ClockAhead, history.ClockBehind, history.ClockRestore}
}

func (c *Clock) check(v *validation, at place) {
	switch {
	case c.Role != "" && c.Role != history.RoleAggregator:
		v.add(at.at("role"), "role is %s, expected aggregator, or a node instead", quote(c.Role))
	case c.Role == "" && c.Node == "":
		v.add(at, "a clock of nobody, expected a node, or role: aggregator")
	case c.Role != "" && c.Node != "":
		v.add(at.at("node"), "a node beside role aggregator, expected one of them: aggregators have a clock of their own")
	}
	switch {
	case !slices.Contains(clockModes(), c.Mode):
	case c.Mode == history.ClockRestore && !c.By.IsZero():
		v.add(at.at("by"), "by with mode restore, expected it with ahead and behind only")
	case c.Mode != history.ClockRestore && c.By.IsZero():
		v.add(at, "mode %s without by, expected one such as by: 2I", c.Mode)
	}
}
