package shrink

import (
	"maps"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// topology makes the control plane smaller, and everything as it is by default.
func (m minimizer) topology(s *scenario.Scenario) *scenario.Scenario {
	for n := 1; n < s.Topology.Aggregators; n++ {
		if fewer := changed(s, func(s *scenario.Scenario) { s.Topology.Aggregators = n }); m.fails(fewer) {
			s = fewer
		}
	}
	if len(s.Topology.KeyIDs) != 1 {
		s = First(s, []*scenario.Scenario{changed(s, func(s *scenario.Scenario) { s.Topology.KeyIDs = []string{scenario.DefaultKeyID} })}, m.fails)
	}
	s = First(s, fewerNodes(s), m.fails)
	if s.Contract == scenario.ContractConditions && s.Operator == scenario.Operators()[0] {
		return s
	}
	return First(s, []*scenario.Scenario{changed(s, func(s *scenario.Scenario) {
		s.Contract, s.Operator = scenario.ContractConditions, scenario.Operators()[0]
	})}, m.fails)
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
		c := changed(s, func(s *scenario.Scenario) { s.Topology.ControlPlanes = n })
		out = append(out, with(c, mapped(s.Steps, func(step scenario.Step) scenario.Step { return renamed(step, names) })))
	}
	return out
}

// usedNodes are the nodes of the beginning that a step names.
func usedNodes(s *scenario.Scenario) []string {
	used := map[string]bool{}
	for _, n := range s.Topology.Nodes() {
		scenario.Walk(s.Steps, func(step scenario.Step) {
			if step.Action != nil {
				used[n] = used[n] || slices.Contains(scenario.Nodes(step.Action), n)
			}
			used[n] = used[n] || step.Expect != nil && strings.Contains(step.Expect.CEL, `"`+n+`"`)
		})
	}
	maps.DeleteFunc(used, func(_ string, yes bool) bool { return !yes })
	return slices.Sorted(maps.Keys(used))
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
