package scenario

import (
	"fmt"
	"slices"
)

// Rewritten gives the scenario with other expectations, and the places of those that differ. Of an expectation whose expression becomes empty, only the
// time is kept.
func (s *Scenario) Rewritten(rewrite func(Expectation) Expectation) (out *Scenario, places []string) {
	copied := *s
	copied.Steps, places = rewritten(s.Steps, "steps", rewrite)
	return &copied, places
}

func rewritten(steps []Step, at string, rewrite func(Expectation) Expectation) (out []Step, places []string) {
	out = slices.Clone(steps)
	for i := range out {
		s, at := &out[i], fmt.Sprintf("%s[%d]", at, i)
		var below []string
		s.Parallel, below = rewritten(s.Parallel, at+".parallel", rewrite)
		places = append(places, below...)
		if s.Repeat != nil {
			repeat := *s.Repeat
			repeat.Steps, below = rewritten(repeat.Steps, at+".repeat", rewrite)
			s.Repeat, places = &repeat, append(places, below...)
		}
		if s.Expect == nil {
			continue
		}
		e := rewrite(*s.Expect)
		if e == *s.Expect {
			continue
		}
		places = append(places, at)
		switch {
		case e.CEL != "":
			s.Expect = &e
		case e.Mode == ModeWithin:
			s.Expect, s.Wait = nil, D("0s")
		default:
			s.Expect, s.Wait = nil, e.Bound
		}
	}
	return out, places
}
