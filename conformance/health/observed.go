package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
)

// Observed is what one run of a scenario showed.
type Observed struct {
	Result  result.Result
	Verdict check.Verdict // zero if nothing was judged
	Began   time.Time     // of the recording
	// Expectations of the engine, in their order, and the actions that failed.
	Expectations []Expectation
}

// Expectation is one expectation of a scenario that was judged.
type Expectation struct {
	history.Expectation
	At time.Time
}

// Observe reads what Judge needs from the events of a run.
func Observe(r result.Result, v check.Verdict, events []history.Event) Observed {
	o := Observed{Result: r, Verdict: v}
	if len(events) > 0 {
		o.Began = events[0].At
	}
	for _, e := range events {
		switch {
		case e.Expectation != nil:
			o.Expectations = append(o.Expectations, Expectation{*e.Expectation, e.At})
		case e.Action != nil && e.Action.State == history.ActionFailed:
			failed := history.Expectation{ID: e.Action.ID, Mode: "action", Text: e.Action.Verb + " " + e.Action.Target + " takes effect", Detail: e.Action.Error}
			o.Expectations = append(o.Expectations, Expectation{failed, e.At})
		}
	}
	return o
}

// scenario is the name in the catalogue; a run in a further wire form has a longer one.
func (o Observed) scenario() string {
	name, _, _ := strings.Cut(o.Result.Scenario, "@")
	return name
}

// finding is something in a run that is not as it should be.
type finding struct {
	run  *Observed
	step string // the id of the expectation or action that failed; empty for a violation
	check.Violation
	more  int // of the same invariant
	check int // of the suite that it belongs to; -1 if to none
}

// findings are the violations and failed expectations of a run, in the order of the verdict and of time.
func (o *Observed) findings() (all []finding) {
	for _, i := range o.Verdict.Invariants {
		if i.Status != check.Failed && len(i.House) == 0 {
			continue
		}
		for _, v := range append(slices.Clone(i.Violations), i.House...) {
			all = append(all, finding{run: o, Violation: v, more: i.Count - 1})
		}
	}
	for _, e := range o.Expectations {
		if e.OK || e.Repeats != "" {
			continue
		}
		v := check.Violation{At: e.At, Offset: e.At.Sub(o.Began), Seen: e.Detail, Allowed: fmt.Sprintf("%s %v: %s", e.Mode, e.Bound, e.Text)}
		if e.House {
			v.House = "the scenario expects what only this project decides"
		}
		all = append(all, finding{run: o, step: e.ID, Violation: v})
	}
	place := func(f finding) int {
		return slices.IndexFunc(o.Verdict.Failing, func(x check.Failing) bool { return x.ID == cmp.Or(f.step, f.Invariant) })
	}
	slices.SortStableFunc(all, func(a, b finding) int { return cmp.Or(cmp.Compare(place(a), place(b)), a.At.Compare(b.At)) })
	return all
}

// decided reports whether the run passed or failed.
func (o *Observed) decided() bool {
	return o.Result.Status == result.Passed || o.Result.Status == result.Failed
}

// steady reports whether the scenario got as far as its steps: the cluster was healthy before them, or the scenario starts it.
func (o *Observed) steady() bool {
	for _, e := range o.Expectations {
		if e.ID == beforeSteps {
			return e.OK
		}
	}
	return len(o.Expectations) > 0
}

// beforeSteps is the control before the steps of a scenario.
const beforeSteps = "before.expect"

// direct reports whether a finding shows a mistake by itself: it is a violation of an invariant, and not a consequence of another one.
func (f finding) direct() bool { return f.step == "" && f.Because == "" }

// code is what the finding is called in a report: the id of the step, or INVARIANT/rule.
func (f finding) code() string { return cmp.Or(f.step, check.Code(f.Invariant, f.Rule)) }
