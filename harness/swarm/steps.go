package swarm

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

type steps = []scenario.Step

func step(a scenario.Action) scenario.Step { return scenario.Step{Action: a} }

func wait(text string) scenario.Step { return scenario.Step{Wait: scenario.D(text)} }

func repeat(times int, s ...scenario.Step) scenario.Step {
	return scenario.Step{Repeat: &scenario.Repeat{Times: times, Steps: s}}
}

// together are rows of steps that go on at the same time.
func together(rows []steps) scenario.Step {
	var all steps
	for _, row := range rows {
		all = append(all, repeat(1, row...))
	}
	return scenario.Step{Parallel: all}
}

func expect(within, cel string) scenario.Step {
	return scenario.Step{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: cel, Bound: scenario.D(within)}}
}

func holds(during, cel string) scenario.Step {
	return scenario.Step{Expect: &scenario.Expectation{Mode: scenario.ModeHolds, CEL: cel, Bound: scenario.D(during)}}
}

func process(do scenario.Verb, who scenario.Selector) *scenario.Process {
	return &scenario.Process{Do: do, Target: who}
}

// kindOfStep is the kind of fault that a drawn step is, in the checker's words; empty for one that is none.
func kindOfStep(s scenario.Step) string {
	if s.Action == nil {
		return ""
	}
	return facts.FaultKind(string(scenario.VerbOf(s.Action)), scenario.Target(s.Action, nil), scenario.Params(s.Action))
}

// Kinds are the kinds of faults that seeds can draw. There is no list of them that could be wrong: they are found by drawing.
func Kinds() []string {
	known := map[string]bool{}
	for seed := range int64(manySeeds) {
		scenario.Walk(Plan{}.Scenario(seed).Steps, func(s scenario.Step) { known[kindOfStep(s)] = true })
	}
	delete(known, "")
	return slices.Sorted(maps.Keys(known))
}

// manySeeds have all kinds in them: a test looks whether more seeds have more.
const manySeeds = 1500
