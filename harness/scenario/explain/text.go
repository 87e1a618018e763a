package explain

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

func (l *timeline) text(s scenario.Step) string {
	switch {
	case s.Action != nil:
		return scenario.Line(s.Action, l.nodes)
	case s.Expect != nil:
		return expecting(*s.Expect)
	case s.Parallel != nil:
		return "at the same time:"
	case s.Repeat != nil:
		if s.Repeat.Until != "" {
			return fmt.Sprintf("up to %d times, until %s:", s.Repeat.Times, s.Repeat.Until)
		}
		return fmt.Sprintf("%d times:", s.Repeat.Times)
	}
	return "let " + s.Wait.Text + " pass"
}

func expecting(e scenario.Expectation) string {
	switch e.Mode {
	case scenario.ModeHolds:
		return "for " + e.Bound.Text + " always: " + e.CEL
	case scenario.ModeNever:
		return "for " + e.Bound.Text + " never: " + e.CEL
	}
	return "within " + e.Bound.Text + ": " + e.CEL
}
