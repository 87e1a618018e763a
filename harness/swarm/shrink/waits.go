package shrink

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// waits makes each wait the shortest number of whole intervals that will do, or at least drops what is below a millisecond's meaning.
func (m minimizer) waits(s *scenario.Scenario) *scenario.Scenario {
	count := 0
	scenario.Walk(s.Steps, func(scenario.Step) { count++ })
	for n := range count {
		s = First(s, m.shorter(s, n), m.fails)
	}
	return s
}

// shorter are the scenarios with the n-th step, in the order of the file, waiting less; none if it does not wait.
func (m minimizer) shorter(s *scenario.Scenario, n int) (out []*scenario.Scenario) {
	at := 0
	var wait scenario.Duration
	scenario.Walk(s.Steps, func(step scenario.Step) {
		if at == n {
			wait = step.Wait
		}
		at++
	})
	for _, text := range m.durations(wait) {
		at = 0
		out = append(out, with(s, mapped(s.Steps, func(step scenario.Step) scenario.Step {
			if at == n {
				step.Wait = scenario.D(text)
			}
			at++
			return step
		})))
	}
	return out
}

// durations are simpler than d, the shortest first.
func (m minimizer) durations(d scenario.Duration) (out []string) {
	length, err := d.Resolve(m.timing)
	if err != nil || d.IsZero() {
		return nil
	}
	add := func(text string, l time.Duration) {
		if l < length || l == length && len(text) < len(d.Text) {
			out = append(out, text)
		}
	}
	complete := int(length / m.timing.Interval)
	if rest := length % m.timing.Interval; rest > 0 && complete > 0 {
		add(fmt.Sprintf("%dms", rest.Milliseconds()), rest)
	}
	for _, n := range append(upTo(complete), complete) {
		if n > 0 {
			add(fmt.Sprintf("%dI", n), time.Duration(n)*m.timing.Interval)
		}
	}
	return out
}

// mapped calls f for each step in the order of the file, a group before its steps, and gives what came of it.
func mapped(steps []scenario.Step, f func(scenario.Step) scenario.Step) []scenario.Step {
	out := make([]scenario.Step, len(steps))
	for i, s := range steps {
		s = f(s)
		if s.Parallel != nil {
			s.Parallel = mapped(s.Parallel, f)
		}
		if s.Repeat != nil {
			s.Repeat = &scenario.Repeat{Until: s.Repeat.Until, Times: s.Repeat.Times, Steps: mapped(s.Repeat.Steps, f)}
		}
		out[i] = s
	}
	return out
}
