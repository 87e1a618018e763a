package shrink

import (
	"slices"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// timeline takes out steps, and groups that are no more than what is in them.
func (m minimizer) timeline(s *scenario.Scenario) *scenario.Scenario {
	with := func(steps []scenario.Step) *scenario.Scenario {
		return changed(s, func(s *scenario.Scenario) { s.Steps = steps })
	}
	return with(m.steps(s.Steps, false, with))
}

// complete is the scenario that has these steps in the place that is being worked at.
type complete func([]scenario.Step) *scenario.Scenario

// steps shrinks a list of steps, then each of its groups.
func (m minimizer) steps(steps []scenario.Step, parallel bool, put complete) []scenario.Step {
	steps = List(steps, func(s []scenario.Step) bool { return m.fails(put(s)) })
	for i := 0; i < len(steps); i++ {
		steps = m.group(steps, i, put)
		for _, flat := range flatter(steps[i], parallel) {
			if shorter := splice(steps, i, flat...); m.fails(put(shorter)) {
				steps = shorter
				i-- // what came in its place is looked at, too
				break
			}
		}
	}
	return steps
}

// group shrinks what is in steps[i], if it is a group.
func (m minimizer) group(steps []scenario.Step, i int, put complete) []scenario.Step {
	g := steps[i]
	switch {
	case g.Parallel != nil:
		in := func(s []scenario.Step) []scenario.Step { c := g; c.Parallel = s; return splice(steps, i, c) }
		return in(m.steps(g.Parallel, true, func(s []scenario.Step) *scenario.Scenario { return put(in(s)) }))
	case g.Repeat != nil:
		in := func(times int, s []scenario.Step) []scenario.Step {
			c := g
			c.Repeat = &scenario.Repeat{Until: g.Repeat.Until, Times: times, Steps: s}
			return splice(steps, i, c)
		}
		times := First(g.Repeat.Times, upTo(g.Repeat.Times), func(n int) bool { return m.fails(put(in(n, g.Repeat.Steps))) })
		return in(times, m.steps(g.Repeat.Steps, false, func(s []scenario.Step) *scenario.Scenario { return put(in(times, s)) }))
	}
	return steps
}

// flatter are the steps that can stand in the place of a group. Steps that have an instant of their own are left alone.
func flatter(g scenario.Step, parallel bool) [][]scenario.Step {
	switch {
	case !g.At.IsZero() || !g.After.IsZero():
		return nil
	case g.Repeat != nil && g.Repeat.Times == 1 && (!parallel || len(g.Repeat.Steps) == 1):
		return [][]scenario.Step{g.Repeat.Steps}
	case g.Parallel != nil && (!parallel || len(g.Parallel) == 1):
		return [][]scenario.Step{g.Parallel} // one after another, if that will do
	}
	return nil
}

// splice is steps with others in place of one.
func splice(steps []scenario.Step, i int, in ...scenario.Step) []scenario.Step {
	return slices.Concat(steps[:i], in, steps[i+1:])
}

// upTo are the numbers from 1 to n, n itself left out.
func upTo(n int) (out []int) {
	for i := 1; i < n; i++ {
		out = append(out, i)
		if i >= 8 {
			i += i/2 - 1
		}
	}
	return out
}
