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
	j := judgement{suite: s, strict: strict, runs: runs, of: make([][]finding, len(s.Checks)), general: map[int]bool{}, cause: map[*Observed]cause{}}
	for n := range runs {
		if runs[n].Result.Status == result.Passed || runs[n].Result.Status == result.Failed {
			j.decided = append(j.decided, &runs[n])
		}
	}
	for _, o := range j.decided {
		j.find(o)
	}
	for _, o := range j.decided {
		j.attribute(o)
	}
	results := make([]conformance.Result, len(s.Checks))
	for i := range s.Checks {
		results[i] = j.result(i)
	}
	return results
}

// judgement is the state of one call of Judge.
type judgement struct {
	suite  Suite
	strict bool
	runs   []Observed
	// decided are the runs that passed or failed.
	decided []*Observed
	// general are the checks that are broken where nothing is done to the subject, in a scenario of their own. What they forbid is not the mistake
	// of a check about one scenario.
	general map[int]bool
	of      [][]finding // by check
	cause   map[*Observed]cause
}

// find fills general.
func (j *judgement) find(o *Observed) {
	for _, f := range o.findings() {
		if i := j.suite.owner(f, true); i >= 0 && f.direct() && i == j.suite.owner(f, false) && j.suite.Checks[i].fits(o) && o.scenario() == undisturbed {
			j.general[i] = true
		}
	}
}

// undisturbed is the scenario in which nothing happens to the subject.
const undisturbed = "steady-state"

// owner returns the check of a finding, -1 if there is none.
func (j *judgement) owner(f finding) int {
	if i := j.suite.owner(f, true); j.general[i] {
		return i
	}
	return j.suite.owner(f, false)
}

// cause is the finding that explains the others of a run, and its check.
type cause struct {
	finding
	check int
}

// attribute gives the findings of a run to the checks. The cause of the others is the first direct finding.
func (j *judgement) attribute(o *Observed) {
	for _, f := range o.findings() {
		i := j.owner(f)
		if i < 0 {
			continue
		}
		j.of[i] = append(j.of[i], f)
		if _, have := j.cause[o]; f.direct() && !j.pardoned(f) && !j.suite.Checks[i].EndToEnd && !have {
			j.cause[o] = cause{f, i}
		}
	}
}

// pardoned reports whether a finding fails nothing: no source demands what was not kept.
func (j *judgement) pardoned(f finding) bool { return f.House != "" && !j.strict }

// follows reports whether a finding of check i is explained by the cause of its run.
func (j *judgement) follows(i int, f finding) (cause, bool) {
	c, ok := j.cause[f.run]
	if !ok || c.check == i {
		return c, false
	}
	return c, f.Because != "" || f.step != "" || j.suite.Checks[i].EndToEnd || c.Invariant == check.NoExitID
}

func (j *judgement) result(i int) conformance.Result {
	c := j.suite.Checks[i]
	r := conformance.Result{Check: c.Check}
	var faults, house []finding
	var blocked string
	for _, f := range j.of[i] {
		by, follows := j.follows(i, f)
		switch {
		case j.pardoned(f):
			house = append(house, f)
		case !follows:
			faults = append(faults, f)
		case blocked == "":
			blocked = fmt.Sprintf("%s failed in scenario %s, which follows from %s", f.code(), f.run.Result.Scenario, j.suite.Checks[by.check].ID)
		}
	}
	switch {
	case len(faults) > 0:
		r.Outcome, r.Evidence = conformance.Failed, evidence(faults)
	case blocked != "":
		r.Outcome, r.Reason = conformance.Blocked, blocked
	case len(house) > 0 && c.House:
		r.Outcome = conformance.NotSupported
		r.Reason = "no source demands it, and the subject decides otherwise than this project (--strict makes it a failure): " + house[0].Seen
	default:
		r.Outcome, r.Reason = j.unbroken(c)
	}
	if n := j.judged(c); n > 0 && r.Outcome == conformance.Passed {
		r.Measured = []string{fmt.Sprintf("judged %d times", n)}
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

// unbroken is the outcome of a check without findings: passed if it was judged, and otherwise why it was not.
func (j *judgement) unbroken(c Check) (conformance.Outcome, string) {
	if j.judged(c) > 0 {
		return conformance.Passed, ""
	}
	var lacking, undecided, early string
	for n := range j.runs {
		o := &j.runs[n]
		if !c.fits(o) {
			continue
		}
		name, why := o.Result.Scenario, strings.Join(o.Result.Reasons, "; ")
		switch o.Result.Status {
		case result.NotSupported:
			lacking = "scenario " + name + " needs " + why
		case result.Inconclusive:
			undecided = "scenario " + name + " is inconclusive, because the machine starved its processes of CPU time: " + why
		case result.Passed, result.Failed:
			if notes := leftOut(c, o); o.Result.Status == result.Passed && notes != "" {
				lacking = "scenario " + name + ": " + notes
				continue
			}
			early = "scenario " + name + " ended before it was judged"
			if by, ok := j.cause[o]; ok {
				early += ", because of " + j.suite.Checks[by.check].ID
			} else if f := o.findings(); len(f) > 0 {
				if i := j.owner(f[0]); i >= 0 {
					early += ", because of " + j.suite.Checks[i].ID
				}
			}
		default:
			undecided = "scenario " + name + " could not run: " + why
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
