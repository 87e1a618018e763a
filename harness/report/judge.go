package report

import (
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
	switch {
	case v.OK:
		r.Status = Passed
		return
	case v.Outcome == check.RunInconclusive: // no failure of the subject
		r.Status, r.Reasons = Inconclusive, append(r.Reasons, v.Inconclusive...)
		return
	}
	r.Status = Failed
	began := beginning(events)
	r.Failures = append(r.Failures, failedSteps(events, began)...)
	for _, i := range v.Invariants {
		if i.Status == check.Failed {
			r.Failures = append(r.Failures, violation(i))
		}
	}
	causeFirst(r.Failures)
	if len(r.Failures) > 0 {
		return
	}
	for _, p := range v.Problems {
		r.Failures = append(r.Failures, Failure{ID: HistoryID, Seen: p})
	}
}

// causeFirst puts writes that were refused before everything that can follow from them, and points the expectations that failed later at them.
func causeFirst(all []Failure) {
	i := slices.IndexFunc(all, func(f Failure) bool { return f.ID == check.AcceptedID })
	if i < 0 {
		return
	}
	cause := all[i]
	for n := range all {
		if f := &all[n]; f.step && f.At.After(cause.At) {
			f.Because = check.Because(cause.Offset)
		}
	}
	copy(all[1:i+1], all[:i])
	all[0] = cause
}

func beginning(events []history.Event) time.Time {
	if len(events) == 0 {
		return time.Time{}
	}
	return events[0].At
}

// failedSteps are the expectations and actions that the engine itself saw fail.
func failedSteps(events []history.Event, began time.Time) []Failure {
	var out []Failure
	for _, e := range events {
		f := Failure{At: e.At, Offset: e.At.Sub(began), step: true}
		switch {
		case e.Expectation != nil && !e.Expectation.OK:
			f.ID, f.Seen = e.Expectation.ID, e.Expectation.Detail
			f.Allowed = fmt.Sprintf("%s %v: %s", e.Expectation.Mode, e.Expectation.Bound, e.Expectation.Text)
		case e.Action != nil && e.Action.State == history.ActionFailed:
			f.ID, f.Seen, f.Allowed = e.Action.ID, e.Action.Error, "the action takes effect"
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

// violation is the first of an invariant's violations.
func violation(i check.Result) Failure {
	f := Failure{ID: i.ID, Seen: i.Statement, More: i.Count - 1}
	if len(i.Violations) > 0 {
		first := i.Violations[0]
		f.At, f.Offset, f.Seen, f.Allowed, f.Where, f.Because = first.At, first.Offset, first.Seen, first.Allowed, first.Node, first.Because
		if first.KeyID != "" {
			f.Where += "/" + first.KeyID
		}
	}
	return f
}
