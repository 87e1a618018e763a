package shrink

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// topology makes the control plane smaller, and everything as it is by default.
func (m minimizer) topology(s *scenario.Scenario) *scenario.Scenario {
	for n := 1; n < s.Topology.Aggregators; n++ {
		s = m.try(s, func(s *scenario.Scenario) { s.Topology.Aggregators = n })
	}
	if len(s.Topology.KeyIDs) != 1 {
		s = m.try(s, func(s *scenario.Scenario) { s.Topology.KeyIDs = []string{scenario.DefaultKeyID} })
	}
	s = First(s, fewerNodes(s), m.fails)
	if s.Contract == scenario.ContractConditions && s.Operator == scenario.Operators()[0] {
		return s
	}
	return m.try(s, func(s *scenario.Scenario) {
		s.Contract, s.Operator = scenario.ContractConditions, scenario.Operators()[0]
	})
}

// try is the scenario with a change if it still fails, and else without.
func (m minimizer) try(s *scenario.Scenario, change func(*scenario.Scenario)) *scenario.Scenario {
	return First(s, []*scenario.Scenario{changed(s, change)}, m.fails)
}

func changed(s *scenario.Scenario, change func(*scenario.Scenario)) *scenario.Scenario {
	out := *s
	change(&out)
	return &out
}

// fewerNodes keeps the nodes that something happens to, under the first names.
func fewerNodes(s *scenario.Scenario) (out []*scenario.Scenario) {
	used := usedNodes(s)
	names := map[string]string{}
	for i, n := range used {
		names[n] = scenario.NodeName(i + 1)
	}
	for n := max(1, len(used)); n <= s.Topology.ControlPlanes; n++ {
		if n == s.Topology.ControlPlanes && slices.Equal(used, s.Topology.Nodes()[:len(used)]) {
			continue // the same again
		}
		out = append(out, changed(s, func(s *scenario.Scenario) {
			s.Topology.ControlPlanes = n
			s.Steps = mapped(s.Steps, func(step scenario.Step) scenario.Step { return renamed(step, names) })
		}))
	}
	return out
}

// usedNodes are the nodes of the beginning that a step names.
func usedNodes(s *scenario.Scenario) []string {
	return slices.DeleteFunc(s.Topology.Nodes(), func(n string) bool {
		used := false
		scenario.Walk(s.Steps, func(step scenario.Step) {
			used = used || step.Action != nil && slices.Contains(scenario.Nodes(step.Action), n) || step.Expect != nil && strings.Contains(step.Expect.CEL, `"`+n+`"`)
		})
		return !used
	})
}

func renamed(step scenario.Step, to map[string]string) scenario.Step {
	name := func(n string) string {
		if other, ok := to[n]; ok {
			return other
		}
		return n
	}
	if step.Action != nil {
		step.Action = scenario.RenameNodes(step.Action, name)
	}
	if step.Expect != nil {
		e := *step.Expect
		for _, from := range slices.Sorted(maps.Keys(to)) { // first names come first, so none is renamed twice
			e.CEL = strings.ReplaceAll(e.CEL, `"`+from+`"`, `"`+to[from]+`"`)
		}
		step.Expect = &e
	}
	return step
}

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
		shorter := mapped(s.Steps, func(step scenario.Step) scenario.Step {
			if at == n {
				step.Wait = scenario.D(text)
			}
			at++
			return step
		})
		out = append(out, changed(s, func(s *scenario.Scenario) { s.Steps = shorter }))
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
