package result

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
)

// HistoryID is the ID of a failure of the recording itself.
const HistoryID = "history"

// Judge puts a verdict into the words of a result.
func (r *Result) Judge(v check.Verdict, events []history.Event) {
	r.Events, r.Expectations = v.Events, v.Expectations.Judged
	r.Notes = append(r.Notes, v.Notes...)
	for _, i := range v.Invariants {
		r.Checks += i.Judged
	}
	r.House = house(v, events)
	switch {
	case v.WrongForm != "":
		r.Status, r.Unsuitable = CouldNotRun, true
		r.Reasons = append(r.Reasons, fmt.Sprintf("the reporter under test writes the form %s and not the one that was asked for: choose it with --contract %s", v.WrongForm, v.WrongForm))
		return
	case v.OK:
		r.Status = Passed
		return
	case v.Outcome == check.RunInconclusive: // no failure of the subject
		r.Status, r.Reasons = Inconclusive, append(r.Reasons, v.Inconclusive...)
		return
	}
	r.Status = Failed
	r.Failures = append(r.Failures, failedSteps(events, beginning(events), v.Expectations.House)...)
	for _, i := range v.Invariants {
		if i.Status == check.Failed {
			r.Failures = append(r.Failures, violation(i))
		}
	}
	r.sort(v.Failing)
	if len(r.Failures) > 0 {
		return
	}
	for _, p := range v.Problems {
		r.Failures = append(r.Failures, Failure{ID: HistoryID, Seen: p})
	}
}

// sort puts the failures into the order of the verdict, and names the causes of expectations and actions. What the verdict does not list comes last.
func (r *Result) sort(failing []check.Failing) {
	place := func(f Failure) int {
		i := slices.IndexFunc(failing, func(x check.Failing) bool { return x.ID == f.ID })
		if i < 0 {
			return len(failing)
		}
		return i
	}
	for n := range r.Failures {
		if i := place(r.Failures[n]); i < len(failing) {
			r.Failures[n].Because = failing[i].Because
		}
	}
	slices.SortStableFunc(r.Failures, func(a, b Failure) int { return cmp.Compare(place(a), place(b)) })
}

func beginning(events []history.Event) time.Time {
	if len(events) == 0 {
		return time.Time{}
	}
	return events[0].At
}

// failedSteps are the expectations and actions that the engine itself saw fail, without those that are about house rules alone. One that failed in the
// same way as an earlier one is named there.
func failedSteps(events []history.Event, began time.Time, house []history.Expectation) []Failure {
	var out []Failure
	for _, e := range events {
		f := Failure{At: e.At, Offset: e.At.Sub(began)}
		switch {
		case e.Expectation != nil && !e.Expectation.OK:
			if slices.Contains(house, *e.Expectation) {
				continue
			}
			if i := slices.IndexFunc(out, func(f Failure) bool { return f.ID == e.Expectation.Repeats }); i >= 0 {
				out[i].Repeated = append(out[i].Repeated, e.Expectation.ID)
				continue
			}
			f = f.of(*e.Expectation)
		case e.Action != nil && e.Action.State == history.ActionFailed:
			f.ID, f.Seen, f.Allowed = e.Action.ID, e.Action.Error, "the action takes effect"
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

func (f Failure) of(e history.Expectation) Failure {
	f.ID, f.Seen, f.Allowed = e.ID, e.Detail, fmt.Sprintf("%s %v: %s", e.Mode, e.Bound, e.Text)
	return f
}

// house are the house rules that were not kept, and fail nothing.
func house(v check.Verdict, events []history.Event) []Failure {
	var out []Failure
	began := beginning(events)
	for _, e := range events {
		if e.Expectation != nil && slices.Contains(v.Expectations.House, *e.Expectation) {
			out = append(out, Failure{At: e.At, Offset: e.At.Sub(began)}.of(*e.Expectation))
		}
	}
	for _, i := range v.Invariants {
		if len(i.House) > 0 {
			out = append(out, violation(check.Result{ID: i.ID, Statement: i.Statement, Count: len(i.House), Violations: i.House}))
		}
	}
	return out
}

// violation is the first of an invariant's violations.
func violation(i check.Result) Failure {
	f := Failure{ID: i.ID, Seen: i.Statement, More: i.Count - 1}
	if len(i.Violations) > 0 {
		first := i.Violations[0]
		f.Rule, f.At, f.Offset, f.Seen, f.Allowed, f.Where, f.Because, f.House = first.Rule, first.At, first.Offset, first.Seen, first.Allowed, first.Node, first.Because, first.House
		if first.KeyID != "" {
			f.Where += "/" + first.KeyID
		}
	}
	return f
}
