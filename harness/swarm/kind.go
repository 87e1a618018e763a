package swarm

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

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
