package shrink

import (
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Scenario is the shortest scenario found that still fails: fewer lanes, episodes and steps, then shorter waits, then a smaller
// topology, and again until nothing gets shorter. Fails is also asked about scenarios that cannot be; they do not fail.
func Scenario(s *scenario.Scenario, t contract.Timing, fails func(*scenario.Scenario) bool) *scenario.Scenario {
	m := minimizer{timing: t, fails: fails}
	for {
		before := Size(s)
		s = m.topology(m.waits(m.timeline(s)))
		if Size(s) == before {
			return s
		}
	}
}

// minimizer shrinks one scenario. Scenarios are values: what is changed is a copy.
type minimizer struct {
	timing contract.Timing
	fails  func(*scenario.Scenario) bool
}

type Measure struct {
	Steps, Nodes, Aggregators, Plugins int
	Waits                              string // as written
}

// Size measures a scenario. Groups are not steps.
func Size(s *scenario.Scenario) Measure {
	m := Measure{Nodes: s.Topology.ControlPlanes, Aggregators: s.Topology.Aggregators, Plugins: len(s.Topology.KeyIDs)}
	scenario.Walk(s.Steps, func(step scenario.Step) {
		if step.Parallel == nil && step.Repeat == nil {
			m.Steps++
		}
		m.Waits += step.Wait.Text + ";"
	})
	return m
}

func with(s *scenario.Scenario, steps []scenario.Step) *scenario.Scenario {
	out := *s
	out.Steps = steps
	return &out
}
