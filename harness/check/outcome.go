package check

import (
	"fmt"
	"slices"

	"github.com/kmsharness/kmsharness/harness/check/text"
)

// Outcome is what a run came to.
type Outcome string

const (
	RunPassed       Outcome = "passed"
	RunFailed       Outcome = "failed"       // something did not hold, and CPU starvation does not explain all of it
	RunInconclusive Outcome = "inconclusive" // something did not hold, and CPU starvation explains all of it
)

// decide sets the outcome by what is failing. steps are the failed expectations and actions of it.
func (out *Verdict) decide(steps []Failing) {
	failed := len(out.Problems) > len(steps) || slices.ContainsFunc(out.Invariants, func(r Result) bool { return r.Status == Failed && len(r.Violations) == 0 })
	var explained []string
	for _, f := range out.Failing {
		switch {
		case f.layer == layerNothing && len(steps) > 0: // the scenario did not get that far
		case f.starved == "":
			failed = true
		default:
			explained = append(explained, fmt.Sprintf("%s at +%s: %s", f.ID, text.Short(f.Offset), f.starved))
		}
	}
	switch {
	case failed:
		out.Outcome = RunFailed
	case len(explained) > 0:
		out.Outcome, out.Inconclusive = RunInconclusive, explained
	default:
		out.Outcome, out.OK = RunPassed, true
	}
}
