package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/result"
)

// Judge returns the result of each check of the suite, in the order of the suite. In a strict judgement the decisions of this project are rules like
// all others.
func (s Suite) Judge(runs []Observed, strict bool) []conformance.Result {
	j := judgement{Suite: s, strict: strict, runs: runs, general: map[int]bool{}, causes: map[*Observed]finding{}}
	for n := range runs {
		if runs[n].decided() {
			j.findings = append(j.findings, runs[n].findings()...)
		}
	}
	for _, f := range j.findings {
		if i := s.owner(f, true); i >= 0 && f.direct() && f.run.scenario() == undisturbed && i == s.owner(f, false) && s.Checks[i].fits(f.run) {
			j.general[i] = true
		}
	}
	for n := range j.findings {
		j.attribute(&j.findings[n])
	}
	results := make([]conformance.Result, len(s.Checks))
	for i := range s.Checks {
		results[i] = j.result(i)
	}
	return results
}

// undisturbed is the scenario in which nothing happens to the subject.
const undisturbed = "steady-state"

// judgement is the state of one call of Judge.
type judgement struct {
	Suite
	strict   bool
	runs     []Observed
	findings []finding // of the runs that passed or failed
	// general are the checks that are broken where nothing is done to the subject, in a scenario of their own. What they forbid is not the mistake
	// of a check about one scenario.
	general map[int]bool
	causes  map[*Observed]finding // that explain the others of a run
}

// attribute gives a finding to a check. The cause of the others of its run is the first direct finding.
func (j *judgement) attribute(f *finding) {
	if f.check = j.owner(*f, true); !j.general[f.check] {
		f.check = j.owner(*f, false)
	}
	if _, have := j.causes[f.run]; f.check >= 0 && f.direct() && !j.pardoned(*f) && !j.Checks[f.check].EndToEnd && !have {
		j.causes[f.run] = *f
	}
}

// pardoned reports whether a finding fails nothing: no source demands what was not kept.
func (j *judgement) pardoned(f finding) bool { return f.House != "" && !j.strict }

// follows reports whether a finding is explained by the cause of its run.
func (j *judgement) follows(f finding) bool {
	c, ok := j.causes[f.run]
	return ok && c.check != f.check && (f.Because != "" || f.step != "" || j.Checks[f.check].EndToEnd || c.Invariant == check.NoExitID)
}

func (j *judgement) result(i int) conformance.Result {
	c := j.Checks[i]
	r := conformance.Result{Check: c.Check}
	var faults, house []finding
	var blocked string
	for _, f := range j.findings {
		switch {
		case f.check != i:
		case j.pardoned(f):
			house = append(house, f)
		case !j.follows(f):
			faults = append(faults, f)
		case blocked == "":
			blocked = fmt.Sprintf("%s failed in scenario %s, which follows from %s", f.code(), f.run.Result.Scenario, j.Checks[j.causes[f.run].check].ID)
		}
	}
	n := j.judged(c)
	switch {
	case len(faults) > 0:
		r.Outcome, r.Evidence = conformance.Failed, evidence(faults)
	case blocked != "":
		r.Outcome, r.Reason = conformance.Blocked, blocked
	case len(house) > 0 && c.House:
		r.Outcome = conformance.NotSupported
		r.Reason = "no source demands it, and the subject decides otherwise than this project (--strict makes it a failure): " + house[0].Seen
	case n > 0 && j.general[slices.Index(j.IDs(), c.RestsOn)]:
		r.Outcome, r.Reason = conformance.Blocked, c.RestsOn+" is broken although nothing is done to the subject: what it reports is not what a plugin answered"
	case n > 0:
		r.Outcome, r.Measured = conformance.Passed, []string{fmt.Sprintf("judged %d times", n)}
	default:
		r.Outcome, r.Reason = j.notJudged(c)
	}
	return r
}

// evidence is the first finding in full, and how many there are.
func evidence(all []finding) *conformance.Evidence {
	f := all[0]
	where := f.Node
	if f.KeyID != "" {
		where += "/" + f.KeyID
	}
	request := strings.Join(strings.Fields(fmt.Sprintf("scenario %s: %s %s at +%.1fs", f.run.Result.Scenario, f.code(), where, f.Offset.Seconds())), " ")
	e := &conformance.Evidence{Request: request, Response: result.Indent(f.Seen), Expected: result.Indent(f.Allowed)}
	var others []string
	for _, o := range all[1:] {
		if o.run != f.run && !slices.Contains(others, o.run.Result.Scenario) {
			others = append(others, o.run.Result.Scenario)
		}
	}
	if f.more > 0 {
		e.Response += fmt.Sprintf("; and %d more in this run", f.more)
	}
	if len(others) > 0 {
		e.Response += "; also in " + strings.Join(others, ", ")
	}
	return e
}

// fits reports whether a run exercises a check.
func (c Check) fits(o *Observed) bool {
	return slices.Contains(c.Scenarios, o.scenario()) && (c.Form == "" || c.Form == o.Result.Form)
}

// judged counts what the runs judged for a check; 0 if nothing was judged of its violations, or of its expectations, where it claims such.
func (j *judgement) judged(c Check) (total int) {
	kinds := map[bool]int{} // violations or not
	for _, claim := range c.Claims {
		kind := len(claim.Violations) > 0
		kinds[kind] += 0
		for n := range j.runs {
			if o := &j.runs[n]; c.fits(o) && o.steady() && o.Result.Status != result.Inconclusive {
				kinds[kind] += claim.judged(o)
			}
		}
	}
	for _, n := range kinds {
		if n == 0 {
			return 0
		}
		total += n
	}
	return total
}

// notJudged is the outcome of a check without findings that nothing was judged for, and why.
func (j *judgement) notJudged(c Check) (conformance.Outcome, string) {
	var lacking, undecided, early string
	for n := range j.runs {
		o := &j.runs[n]
		if !c.fits(o) {
			continue
		}
		name, why := "scenario "+o.Result.Scenario, strings.Join(o.Result.Reasons, "; ")
		notes := leftOut(c, o)
		switch {
		case o.Result.Status == result.NotSupported:
			lacking = name + " needs " + why
		case o.Result.Status == result.Inconclusive:
			undecided = name + " is inconclusive, because the machine starved its processes of CPU time: " + why
		case o.Result.Status == result.Passed && notes != "":
			lacking = name + ": " + notes
		case o.decided():
			early = name + " ended before it was judged" + j.because(o)
		default:
			undecided = name + " could not run: " + why
		}
	}
	switch {
	case undecided != "":
		return conformance.Blocked, undecided
	case early != "":
		return conformance.Blocked, early
	case lacking != "":
		return conformance.NotSupported, lacking
	case c.Form != "":
		return conformance.NotSupported, "no run was in the wire form " + c.Form
	}
	return conformance.NotSupported, "nothing in the runs showed it"
}

// because names the check of what went wrong first in a run.
func (j *judgement) because(o *Observed) string {
	first, ok := j.causes[o]
	if !ok {
		i := slices.IndexFunc(j.findings, func(f finding) bool { return f.run == o })
		if i < 0 || j.findings[i].check < 0 {
			return ""
		}
		first = j.findings[i]
	}
	return ", because of " + j.Checks[first.check].ID
}

// leftOut is what a run that passed notes about a step that it did not have and a check is about, empty if there is none: the subject lacks something that the step needs.
func leftOut(c Check, o *Observed) string {
	for _, claim := range c.Claims {
		for _, id := range claim.Steps {
			step, _, _ := strings.Cut(id, ".")
			if i := slices.IndexFunc(o.Result.Notes, func(note string) bool { return strings.Contains(note, step+" ") || strings.Contains(note, step+",") }); i >= 0 {
				return o.Result.Notes[i]
			}
		}
	}
	return ""
}
