package main

import (
	"time"

	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/options"
)

// catchUp counts ticks from when the last one was due, and not from now.
func catchUp(options.Options) (reporter.Change, error) {
	return func(l *reporter.Loop) { l.Step = catchesUp() }, nil
}

// catchesUp keeps a schedule of its own, and nothing between two ticks.
func catchesUp() func(core.Config, core.State, core.Event) (core.State, core.Action) {
	var due time.Time
	return func(c core.Config, s core.State, ev core.Event) (core.State, core.Action) {
		if ev.Kind == core.Timer {
			s = core.State{}
			if due.IsZero() {
				due = ev.Now
			}
		}
		s, a := core.Step(c, s, ev)
		if a.Kind == core.Wait {
			due = due.Add(c.Timing.Interval)
			a.Until = due
		}
		return s, a
	}
}
