package swarm

import "github.com/kmsharness/kmsharness/harness/scenario"

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
