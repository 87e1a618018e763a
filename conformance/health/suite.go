package health

import (
	"slices"
	"strings"
)

// owner returns the index of the check that a finding belongs to: the one whose claim fits most closely, the first of several; -1 if none fits.
// A claim that names texts is closer than one that names scenarios, and that is closer than one that names neither. If general is true, claims of
// invariants in some scenarios only are left out.
func (s Suite) owner(f finding, general bool) int {
	best, closest := -1, -1
	for i, c := range s.Checks {
		if c.Form != "" && c.Form != f.run.Result.Form || f.House == "" && c.House {
			continue
		}
		for _, claim := range c.Claims {
			if !claim.fits(f) || general && claim.Invariant != "" && len(claim.In) > 0 {
				continue
			}
			closeness := claim.closeness()
			if f.House != "" && c.House {
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

func (c Claim) closeness() (n int) {
	if len(c.Seen) > 0 || len(c.Steps) > 0 {
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

func (c Claim) fits(f finding) bool {
	if c.Invariant != f.invariant || !c.in(f.scenario) || c.Node != "" && c.Node != f.Node && f.invariant != "" {
		return false
	}
	if len(c.Steps) > 0 && !slices.Contains(c.Steps, f.step) {
		return false
	}
	if c.Text != "" && !strings.Contains(f.Allowed, c.Text) {
		return false
	}
	return len(c.Seen) == 0 || slices.ContainsFunc(c.Seen, func(text string) bool {
		return strings.Contains(f.Seen, text) || strings.Contains(f.Allowed, text)
	})
}

func (c Claim) in(scenario string) bool { return len(c.In) == 0 || slices.Contains(c.In, scenario) }

// judged counts what a run looked at for the claim: what the invariant judged, or expectations that were met.
func (c Claim) judged(o *Observed) (n int) {
	if !c.in(o.scenario()) {
		return 0
	}
	if c.Invariant == "" {
		for _, e := range o.Expectations {
			if e.OK && (len(c.Steps) == 0 || slices.Contains(c.Steps, e.ID)) && strings.Contains(e.Text, c.Text) {
				n++
			}
		}
		return n
	}
	for _, i := range o.Verdict.Invariants {
		if i.ID == c.Invariant {
			n += i.Judged
		}
	}
	return n
}
