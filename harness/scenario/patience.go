package scenario

import (
	"regexp"
	"slices"
	"strconv"
)

// seconds is a duration of real time alone.
var seconds = regexp.MustCompile(`^([0-9]+)(s|m)$`)

// Patient gives the scenario with times within which something is expected multiplied, where they are of real time: those do not follow from the
// contract, and a slower program than this project's may need more. factor is 1 or more.
func (s *Scenario) Patient(factor int) *Scenario {
	copied := *s
	copied.Steps = patient(s.Steps, factor)
	return &copied
}

func patient(steps []Step, factor int) []Step {
	out := slices.Clone(steps)
	for i := range out {
		s := &out[i]
		s.Parallel = patient(s.Parallel, factor)
		if s.Repeat != nil {
			repeat := *s.Repeat
			repeat.Steps = patient(repeat.Steps, factor)
			s.Repeat = &repeat
		}
		if s.Expect == nil || s.Expect.Mode != ModeWithin {
			continue
		}
		if m := seconds.FindStringSubmatch(s.Expect.Bound.Text); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				continue // too large to be valid
			}
			expect := *s.Expect
			expect.Bound = D(strconv.Itoa(n*factor) + m[2])
			s.Expect = &expect
		}
	}
	return out
}
