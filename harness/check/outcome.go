package check

import (
	"fmt"

	"github.com/kmsharness/kmsharness/harness/history"
)

// starvedExpectation says whether a failed expectation is not the system's fault for certain: more than the tolerance stalled while it
// was waited for, or shortly before that. How long it would have taken otherwise nobody knows, so it is not met either.
func (v *view) starvedExpectation(e history.Event) (why string, starved bool) {
	x := e.Expectation
	before := max(x.Took, v.run.Timing.DetectionBound())
	total, longest := v.stalledIn(span{e.At.Add(-before), e.At}, func(s stall) bool { return !s.queued })
	if total <= v.tolerance() {
		return "", false
	}
	return fmt.Sprintf("expectation %s (%s %s) failed at +%s, and is not judged: the machine stalled for %s while it was waited for (%s for %s at +%s), and bounds allow for %s",
		x.ID, x.Mode, x.Text, short(e.At.Sub(v.whole.from)), short(total), longest.who.given(), short(longest.length()), short(longest.from.Sub(v.whole.from)), short(v.tolerance())), true
}

// decide says whether the run passed, failed, or is undecided. A mistake that no lack of time explains fails it in any case.
func (out *Verdict) decide(v *view) {
	failed, late, starved := len(out.Problems) > 0, false, len(out.Undecided) > 0
	expected := starved
	for _, r := range out.Invariants {
		starved = starved || r.StarvedCount > 0
		switch {
		case r.Status != Failed:
		case r.ID == "NOTHING-RAN" && expected: // what an expectation that was given up left undone
		case leniences()[r.ID].reach != nil && r.Count > 0 && !staleExcuse(r):
			late = true
		default:
			failed = true
		}
	}
	if out.tooBusy() && (late || starved) {
		out.Undecided = append(out.Undecided, fmt.Sprintf("the machine is too busy for a verdict on anything that must be in time: stalls: %d, for %s of %s (%d %%), the longest for %s at +%s (%s)",
			out.Stalls.Count, short(out.Stalls.Total), short(out.Duration), out.Stalls.Total*100/out.Duration, short(out.Stalls.Longest), short(out.Stalls.LongestAt), out.Stalls.LongestOf))
		late = false
	}
	if failed || late {
		out.Problems, out.Undecided = append(out.Problems, out.Undecided...), nil
	}
	out.OK = !failed && !late && len(out.Undecided) == 0
}

// tooBusy says whether more of the run stalled than leaves a verdict on time.
func (out *Verdict) tooBusy() bool {
	return out.Duration > 0 && out.Stalls.Total > out.Duration/tooBusy
}

// staleExcuse: the scenario excuses what held, which has nothing to do with time.
func staleExcuse(r Result) bool { return r.Excuse != "" }

// starvedNotes tell what was not judged.
func (out *Verdict) starvedNotes() (notes []string) {
	for _, r := range out.Invariants {
		for _, s := range r.Starved {
			notes = append(notes, fmt.Sprintf("starved: %s at +%s: %s", r.ID, short(s.Offset), s.Why))
		}
	}
	if more := len(notes) - MaxViolations; more > 0 {
		notes = append(notes[:MaxViolations], fmt.Sprintf("and %d more that were not judged", more))
	}
	return notes
}
