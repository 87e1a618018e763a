package shrink

import (
	"slices"

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

// fewest is the size of pieces from which on every place is tried for them, not only every piece: a fault, a pause and its end
// are three steps that begin anywhere.
const fewest = 4

// List takes out of list what it fails without: large pieces first, single elements at last (delta debugging).
func List[E any](list []E, fails func([]E) bool) []E {
	for size := len(list); size > 0; size = smaller(size) {
		for at := 0; at < len(list); {
			shorter := slices.Concat(list[:at], list[min(at+size, len(list)):])
			switch {
			case fails(shorter):
				list = shorter
			case size <= fewest:
				at++
			default:
				at += size
			}
		}
	}
	return list
}

func smaller(size int) int {
	if size <= fewest {
		return size - 1
	}
	return max(size/2, fewest)
}

// First is the first candidate that fails; v if none does.
func First[T any](v T, candidates []T, fails func(T) bool) T {
	for _, c := range candidates {
		if fails(c) {
			return c
		}
	}
	return v
}

// Bounded asks fails at most so many times; then nothing fails any more, and what was found stays.
func Bounded[T any](fails func(T) bool, times int) func(T) bool {
	return func(v T) bool {
		if times <= 0 {
			return false
		}
		times--
		return fails(v)
	}
}
