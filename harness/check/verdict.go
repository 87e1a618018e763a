package check

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

// Status of one invariant in one run.
type Status string

const (
	Passed    Status = "passed"
	Failed    Status = "failed"
	Excused   Status = "excused"    // violated, as the scenario said it would be
	NotJudged Status = "not-judged" // nothing in the history to judge it by
)

// Result is what became of one invariant.
type Result struct {
	ID         string      `json:"id"`
	Statement  string      `json:"statement"`
	Source     string      `json:"source"`
	Status     Status      `json:"status"`
	Judged     int         `json:"judged"`
	Count      int         `json:"count"`                // of violations
	Violations []Violation `json:"violations,omitempty"` // the first MaxViolations
	Measures   []Measure   `json:"measures,omitempty"`
	// During is how many of Judged were judged while, or shortly after, a fault of each kind was in force.
	During map[string]int `json:"during,omitempty"`
	// Excuse is the scenario's reason, where it has one.
	Excuse string `json:"excuse,omitempty"`
	// House are the violations of house rules that fail nothing: those of a run that is judged by the sources alone. Count is without them.
	House []Violation `json:"house,omitempty"`

	starved string // how CPU starvation explains the violations; empty if it does not explain every one
	timed   bool   // a violation can have its cause in an earlier one
}

// Expectations sums up what the engine judged.
type Expectations struct {
	Judged int                   `json:"judged"`
	Failed []history.Expectation `json:"failed,omitempty"`
	// House are those that failed, rest on a decision of this project, and fail nothing: as Result.House.
	House []history.Expectation `json:"house,omitempty"`
}

// Verdict is the judgement of one history.
type Verdict struct {
	// Outcome is the verdict in one word; OK: it passed.
	Outcome      Outcome      `json:"outcome"`
	OK           bool         `json:"ok"`
	Scenario     string       `json:"scenario"`
	Backend      string       `json:"backend"`
	Plugin       string       `json:"plugin,omitempty"`   // under test, with its version; empty: the plugins are fake
	Operator     string       `json:"operator,omitempty"` // under test; empty: there is none, or it is this project's
	Reproduce    string       `json:"reproduce,omitempty"`
	Events       int          `json:"events"`
	Actions      int          `json:"actions"`
	Invariants   []Result     `json:"invariants"`
	Expectations Expectations `json:"expectations"`
	Detection    Latency      `json:"detection"`
	Recovery     Latency      `json:"recovery"`
	// Starvation is for how long the harness, etcd or an API server waited for a processor. Inconclusive is how that explains what failed in an
	// inconclusive run.
	Starvation   time.Duration `json:"starvedFor"`
	Inconclusive []string      `json:"inconclusive,omitempty"`
	// WrongForm is the wire form that reporters wrote where they wrote nothing in the one that the run is about; empty if they did.
	WrongForm string `json:"wrongForm,omitempty"`
	// Problems fail a run whatever the invariants say: a failed expectation or action, an incomplete history.
	Problems []string `json:"problems,omitempty"`
	// Failing are the invariants, expectations and actions that failed, the cause first. Every output has this order.
	Failing []Failing `json:"failing,omitempty"`
	// Notes are what somebody should know although nothing is judged by it.
	Notes []string `json:"notes,omitempty"`
	// Containers are the first changes that container engines told of, ContainerChanges is how many there were.
	Containers       []ContainerChange `json:"containers,omitempty"`
	ContainerChanges int               `json:"containerChanges,omitempty"`
	Duration         time.Duration     `json:"duration"` // of the judged part
}

// Run judges a history by all invariants, and by some of the caller's own. It is a pure function: the same events give the same verdict.
func Run(events []history.Event, own ...Invariant) Verdict {
	events = sound(events)
	v, aggregated := newFacts(history.About(events, "")), aggregatedFacts(events)
	out := Verdict{Scenario: v.run.Scenario, Backend: v.run.Backend, Plugin: v.run.Plugin.String(), Operator: v.run.OperatorUnderTest.String(), Reproduce: v.run.Reproduce, Events: len(events)}
	if !v.complete.from.IsZero() {
		out.Duration = v.complete.length()
	}
	excuses := map[string]string{}
	for _, x := range v.run.Excused {
		excuses[x.Invariant] = x.Reason
	}
	faults := newExposure(v)
	for _, i := range append(Invariants(), own...) {
		reason, excused := excuses[i.ID]
		delete(excuses, i.ID)
		out.Invariants = append(out.Invariants, result(v, i, aggregated, faults, reason, excused))
	}
	for _, id := range sortedKeys(excuses) {
		out.Problems = append(out.Problems, fmt.Sprintf("the scenario excuses %s, which is no invariant", quoted(id)))
	}
	detected, recovered := latencies(append([]*Facts{v}, aggregated...))
	out.Detection = summarize(detected, v.run.Timing.DetectionBound()+v.tolerance())
	out.Recovery = summarize(recovered, v.run.Timing.RecoveryBound()+v.tolerance())
	out.WrongForm = v.objects.wrongForm()
	steps := out.addEngine(v)
	out.Notes = notes(v)
	out.Containers, out.ContainerChanges = v.processes.containers()
	out.Starvation = v.starvation.spans.total()
	out.order(v.run, steps)
	out.decide(steps)
	return out
}

// sound drops events without the payload of their kind, which history.Read refuses but a caller may pass.
func sound(events []history.Event) []history.Event {
	return leavingOut(events, func(e *history.Event) bool { return !e.HasPayload() })
}

func result(v *Facts, i Invariant, aggregated []*Facts, faults *exposure, reason string, excused bool) Result {
	f := i.Judge(v)
	for _, x := range aggregated {
		f.add(x.apiServer, i.Judge(x))
	}
	for n := range f.Violations {
		f.Violations[n].House = i.house(f.Violations[n].Rule)
	}
	var house []Violation
	if v.run.SourceOnly {
		house = f.takeHouse()
	}
	r := Result{ID: i.ID, Statement: i.Statement, Source: i.Source, Judged: f.Judged, Count: f.Count, Measures: f.Measures, During: faults.count(f.when), Excuse: reason, Status: Passed, timed: i.Timed != NoneTimed}
	switch {
	case f.Count > 0 && excused:
		r.Status = Excused
	case f.Count > 0:
		r.Status, r.starved = Failed, v.starvation.explainsAll(i, f)
	case excused:
		r.Status, r.Count = Failed, 1
		f.Violate(Violation{At: v.complete.to, Seen: "the scenario excuses this invariant (" + quoted(reason) + "), but it held", Allowed: "an excuse only for what is violated: remove the excuse, it is stale"})
	case f.Judged == 0:
		r.Status = NotJudged
	}
	name := func(x *Violation) { x.Invariant, x.Offset = i.ID, x.At.Sub(v.complete.from) }
	r.Violations = append(r.Violations, f.Violations[:min(len(f.Violations), MaxViolations)]...)
	for n := range r.Violations {
		name(&r.Violations[n])
	}
	r.House = append(r.House, house[:min(len(house), MaxViolations)]...)
	for n := range r.House {
		name(&r.House[n])
	}
	return r
}

// addEngine adds what the engine judged and did, and whether the recording is complete. It returns the failed actions and
// expectations.
func (out *Verdict) addEngine(v *Facts) (steps []Failing) {
	problem := func(format string, args ...any) { out.Problems = append(out.Problems, fmt.Sprintf(format, args...)) }
	failing := func(f Failing, timed bool) {
		if why := v.starvation.explains(f.At, 0); timed && why != "" {
			f.starved = why
		}
		steps = append(steps, f)
		out.Problems = append(out.Problems, f.problem)
	}
	if len(v.all) == 0 || v.all[0].Kind != history.KindRun {
		problem("the history does not begin with a run event")
	} else if err := v.run.Timing.Validate(); err != nil {
		problem("the run's timing is not valid: %v", err)
	}
	for _, a := range v.plugins.actions {
		switch {
		case a.done:
			out.Actions++
		case a.State == history.ActionFailed || a.failed:
			failing(failingAction(a, a.to.Sub(v.complete.from)), a.length() >= v.run.Timing.DetectionBound()) // what is refused fails at once
		default:
			problem("action %s (%s %s) began and never ended", a.ID, a.Verb, a.Target)
		}
	}
	ended := false
	for n := range v.all {
		e := &v.all[n]
		switch e.Kind {
		case history.KindExpectation:
			if !e.Expectation.NotJudged {
				out.Expectations.Judged++
			}
			switch {
			case e.Expectation.OK:
			case e.Expectation.House && v.run.SourceOnly:
				out.Expectations.House = append(out.Expectations.House, *e.Expectation)
			default:
				out.Expectations.Failed = append(out.Expectations.Failed, *e.Expectation)
				failing(failingExpectation(e, e.At.Sub(v.complete.from)), true)
			}
		case history.KindEnd:
			ended = true
			if !e.End.Complete {
				problem("the history is incomplete: %s", quoted(e.End.Problem))
			}
		}
	}
	if !ended {
		problem("the history has no end event: the run was cut off")
	}
	return steps
}
