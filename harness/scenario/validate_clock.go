package scenario

import "github.com/kmsharness/kmsharness/harness/history"

// clock is of a node, or of the aggregators.
func (v *validation) clock(a Action, at place) {
	s := a.Process
	switch {
	case s.Role != "" && s.Role != history.RoleAggregator:
		v.add(at.at("role"), "role is %s, expected aggregator, or a node instead", quote(s.Role))
	case s.Role == "" && s.Node == "":
		v.add(at, "a clock of nobody, expected a node, or role: aggregator")
	case s.Role != "" && s.Node != "":
		v.add(at.at("node"), "a node beside role aggregator, expected one of them: aggregators have a clock of their own")
	}
	v.someNodes(at.at("node"), s.Node)
	mode := a.Text("mode")
	if !v.word(at.at("mode"), "mode", mode, clockModes()) {
		return
	}
	switch _, written := a.Params["by"]; {
	case mode == history.ClockRestore && written:
		v.add(at.at("by"), "by with mode restore, expected it with ahead and behind only")
	case mode != history.ClockRestore && !written:
		v.add(at, "mode %s without by, expected one such as by: 2I", mode)
	}
}

func clockModes() []string {
	return []string{history.ClockAhead, history.ClockBehind, history.ClockRestore}
}
