package check

import "fmt"

// Outcome is what a run came to.
type Outcome string

const (
	RunPassed       Outcome = "passed"
	RunFailed       Outcome = "failed"       // something did not hold, and CPU starvation does not explain all of it
	RunInconclusive Outcome = "inconclusive" // something did not hold, and CPU starvation explains all of it
)

// decide sets the outcome. steps are the failed expectations and actions.
func (out *Verdict) decide(steps []Failing) {
	violated, failed := len(steps) > 0, len(out.Problems) > len(steps)
	for _, s := range steps {
		failed = failed || s.starved == ""
	}
	for _, r := range out.Invariants {
		if r.Status == Failed && (r.ID != "NOTHING-RAN" || len(steps) == 0) { // with them, the scenario did not get that far
			violated, failed = true, failed || r.starved == ""
		}
	}
	switch {
	case failed:
		out.Outcome = RunFailed
	case violated:
		out.Outcome = RunInconclusive
	default:
		out.Outcome, out.OK = RunPassed, true
	}
}

// explain lists how CPU starvation explains what failed in an inconclusive run.
func (out *Verdict) explain() {
	for _, f := range out.Failing {
		if out.Outcome == RunInconclusive && f.starved != "" {
			out.Inconclusive = append(out.Inconclusive, fmt.Sprintf("%s at +%s: %s", f.ID, short(f.Offset), f.starved))
		}
	}
}
