package health

import (
	"slices"
	"strings"
)

// Claim selects findings of verdicts. Each finding belongs to the check with the closest claim, see Suite.owner.
type Claim struct {
	// Violations are the claimed violations: INVARIANT, or INVARIANT/rule for one of its rules. Empty: the claim is about expectations and actions.
	Violations []string `json:"violations,omitempty"`
	// In are the scenarios to which the claim is limited. Empty: all.
	In []string `json:"in,omitempty"`
	// Node limits the claim to violations of one node.
	Node string `json:"node,omitempty"`
	// Steps are the ids of the claimed expectations and actions, such as steps[1].expect. Empty: all of the scenarios.
	Steps []string `json:"steps,omitempty"`
	// Text limits the claim to expectations whose text contains it.
	Text string `json:"text,omitempty"`
}

// owner returns the index of the check that a finding belongs to: the one whose claim fits most closely, the first of several; -1 if none fits.
// If general is true, claims of violations in some scenarios only are left out.
func (s Suite) owner(f finding, general bool) int {
	best, closest := -1, -1
	for i, c := range s.Checks {
		if c.Form != "" && c.Form != f.run.Result.Form || f.House == "" && c.House {
			continue
		}
		for _, claim := range c.Claims {
			if general && len(claim.Violations) > 0 && len(claim.In) > 0 {
				continue
			}
			closeness := claim.closeness(f)
			if closeness >= 0 && f.House != "" && c.House {
				closeness += closerThanAny
			}
			if closeness > closest {
				best, closest = i, closeness
			}
		}
	}
	return best
}

// closerThanAny is more than closeness returns: what rests on a decision of this project belongs to the check of that decision.
const closerThanAny = 16

// closeness is -1 if the claim does not fit the finding. A claim that names a rule or steps is closer than one that names a node or scenarios, and
// that is closer than one that names nothing.
func (c Claim) closeness(f finding) (n int) {
	exact := len(c.Steps) > 0
	fits := len(c.Violations) == 0 && c.about(f.step, f.Allowed)
	if f.step == "" {
		exact = f.Rule != "" && slices.Contains(c.Violations, f.code())
		fits = (exact || slices.Contains(c.Violations, f.Invariant)) && (c.Node == "" || c.Node == f.Node)
	}
	if !fits || !c.in(f.run.scenario()) {
		return -1
	}
	if exact {
		n += 4
	}
	if c.Node != "" {
		n += 2
	}
	if len(c.In) > 0 {
		n++
	}
	return n
}

func (c Claim) in(scenario string) bool { return len(c.In) == 0 || slices.Contains(c.In, scenario) }

// about reports whether the claim, which is about expectations, is about the one with an id and a text.
func (c Claim) about(id, text string) bool {
	return (len(c.Steps) == 0 || slices.Contains(c.Steps, id)) && strings.Contains(text, c.Text)
}

// judged counts what a run judged for the claim: by its invariants, or expectations that were met.
func (c Claim) judged(o *Observed) (n int) {
	if !c.in(o.scenario()) {
		return 0
	}
	for _, i := range o.Verdict.Invariants {
		if slices.ContainsFunc(c.Violations, func(code string) bool { return invariantOf(code) == i.ID }) {
			n += i.Judged
		}
	}
	for _, e := range o.Expectations {
		if len(c.Violations) == 0 && e.OK && c.about(e.ID, e.Text) {
			n++
		}
	}
	return n
}

// invariantOf is the invariant of INVARIANT/rule.
func invariantOf(code string) string {
	id, _, _ := strings.Cut(code, "/")
	return id
}
