package check

import "fmt"

// Outcome is what a run came to.
type Outcome string

const (
	RunPassed       Outcome = "passed"
	RunFailed       Outcome = "failed"       // something did not hold, and CPU starvation does not explain it
	RunInconclusive Outcome = "inconclusive" // something did not hold, and CPU starvation explains all of it
)

// decide sets the outcome. expectations are the failed expectations that CPU starvation explains.
func (out *Verdict) decide(expectations []string) {
	failed := len(out.Problems) > 0
	for i := range out.Invariants {
		r := &out.Invariants[i]
		if r.Status == Failed && r.ID == "NOTHING-RAN" && len(expectations) > 0 { // the scenario did not get that far
			r.Status = Inconclusive
		}
		failed = failed || r.Status == Failed
	}
	explained := append(expectations, out.starved()...)
	switch {
	case failed:
		out.Outcome = RunFailed
		for _, x := range explained {
			out.Notes = append(out.Notes, "starved: "+x)
		}
	case len(explained) > 0:
		out.Outcome, out.Inconclusive = RunInconclusive, explained
	default:
		out.Outcome, out.OK = RunPassed, true
	}
}

// starved describes the violations that CPU starvation explains.
func (out *Verdict) starved() (all []string) {
	count := 0
	for _, r := range out.Invariants {
		count += r.StarvedCount
		for _, s := range r.Starved {
			where := s.Node
			if s.KeyID != "" {
				where += "/" + s.KeyID
			}
			if where != "" {
				where = " " + where
			}
			all = append(all, fmt.Sprintf("%s%s at +%s: %s (%s)", r.ID, where, short(s.Offset), s.Seen, s.Why))
		}
	}
	all = all[:min(len(all), MaxViolations)]
	if more := count - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more violations that CPU starvation explains", more))
	}
	return all
}
