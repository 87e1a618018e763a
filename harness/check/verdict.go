package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/invariants"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// MaxViolations bounds how many violations of one invariant a verdict has; all are counted.
const MaxViolations = 20

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
	// Unjudged is why the run is not judged by it: the aggregator does not promise it, or nothing could show it.
	Unjudged string `json:"unjudged,omitempty"`
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
	Outcome  Outcome `json:"outcome"`
	OK       bool    `json:"ok"`
	Scenario string  `json:"scenario"`
	Backend  string  `json:"backend"`
	Plugin   string  `json:"plugin,omitempty"`   // under test, with its version; empty: the plugins are fake
	Operator string  `json:"operator,omitempty"` // under test; empty: there is none, or it is this project's
	// AggregatorProfile names what the aggregator promises; empty: the default.
	AggregatorProfile string       `json:"aggregatorProfile,omitempty"`
	Observed          bool         `json:"observed,omitempty"` // objects were watched and nothing else
	Reproduce         string       `json:"reproduce,omitempty"`
	Events            int          `json:"events"`
	Actions           int          `json:"actions"`
	Invariants        []Result     `json:"invariants"`
	Expectations      Expectations `json:"expectations"`
	Detection         Latency      `json:"detection"`
	Recovery          Latency      `json:"recovery"`
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
	events = facts.Without(events, func(e *history.Event) bool { return !e.HasPayload() }) // history.Read refuses them, but a caller may pass some
	all := facts.All(events)
	v := all[0]
	out := Verdict{Scenario: v.Run.Scenario, Backend: v.Run.Backend, Plugin: v.Run.Plugin.String(), Operator: v.Run.OperatorUnderTest.String(), AggregatorProfile: v.Run.AggregatorProfile, Observed: v.Run.Observed, Reproduce: v.Run.Reproduce, Events: len(events)}
	if !v.Period.From.IsZero() {
		out.Duration = v.Period.Length()
	}
	excuses := map[string]string{}
	for _, x := range v.Run.Excused {
		excuses[x.Invariant] = x.Reason
	}
	faults, starved := v.Actions.FaultWindows(v.StaleBound(), cmp.Or(v.Phases[history.PhaseAfter], v.Period.To)), newStarvation(v)
	for _, i := range append(Invariants(), own...) {
		reason, excused := excuses[i.ID]
		delete(excuses, i.ID)
		f := find(all, i)
		switch i.ID {
		case invariants.DetectionID:
			out.Detection = invariants.Summarize(f.Latencies, v.DetectionBound()+v.Tolerance)
		case invariants.RecoveryID:
			out.Recovery = invariants.Summarize(f.Latencies, v.RecoveryBound()+v.Tolerance)
		}
		out.Invariants = append(out.Invariants, result(v, i, f, faults, starved, reason, excused))
	}
	for _, id := range slices.Sorted(maps.Keys(excuses)) {
		out.Problems = append(out.Problems, fmt.Sprintf("the scenario excuses %s, which is no invariant", text.Quoted(id)))
	}
	out.WrongForm = wrongForm(v)
	steps := out.addEngine(v, starved)
	out.Notes = notes(v)
	out.Containers, out.ContainerChanges = containers(v)
	out.Starvation = starved.total.Total()
	out.order(v.Run, steps)
	out.decide(steps)
	return out
}

// unjudged is why an invariant does not judge a run; empty if it does.
func unjudged(v *facts.Facts, i Invariant) string {
	switch {
	case !v.Profile.Makes(i.Promise):
		return fmt.Sprintf("an aggregator of the profile %s does not promise %s", v.Profile.Name, i.Promise)
	case v.Run.Observed && !i.Watched:
		return "watched objects do not show it: it needs audit logs, plugins' journals or actions"
	}
	return ""
}

// find judges each API server by itself; it finds nothing where the run is not judged.
func find(all []*facts.Facts, i Invariant) (f Finding) {
	if unjudged(all[0], i) != "" {
		return f
	}
	f = i.Judge(all[0])
	for _, v := range all[1:] {
		f.Add(v.APIServer, i.Judge(v))
	}
	return f
}

func result(v *facts.Facts, i Invariant, f Finding, faults map[string]span.Set, starved starvation, reason string, excused bool) Result {
	for n := range f.Violations {
		f.Violations[n].House = i.House(f.Violations[n].Rule)
	}
	var house []Violation
	if v.Run.SourceOnly {
		house = f.TakeHouse()
	}
	r := Result{ID: i.ID, Statement: i.Statement, Source: i.Source, Judged: f.Judged, Count: f.Count, Measures: f.Measures, During: countDuring(faults, f.When), Excuse: reason, Status: Passed, timed: i.Timed != NoneTimed}
	r.Unjudged = unjudged(v, i)
	excused = excused && r.Unjudged == ""
	switch {
	case f.Count > 0 && excused:
		r.Status = Excused
	case f.Count > 0:
		r.Status, r.starved = Failed, starved.explainsAll(i, f)
	case excused:
		r.Status, r.Count = Failed, 1
		f.Violate(Violation{At: v.Period.To, Seen: "the scenario excuses this invariant (" + text.Quoted(reason) + "), but it held", Allowed: "an excuse only for what is violated: remove the excuse, it is stale"})
	case f.Judged == 0:
		r.Status = NotJudged
	}
	first := func(all []Violation) (some []Violation) {
		for _, x := range all[:min(len(all), MaxViolations)] {
			x.Invariant, x.Offset = i.ID, x.At.Sub(v.Period.From)
			some = append(some, x)
		}
		return some
	}
	r.Violations, r.House = first(f.Violations), first(house)
	return r
}

// addEngine adds what the engine judged and did, and whether the recording is complete. It returns the failed actions and
// expectations.
func (out *Verdict) addEngine(v *facts.Facts, starved starvation) (steps []Failing) {
	problem := func(format string, args ...any) { out.Problems = append(out.Problems, fmt.Sprintf(format, args...)) }
	failing := func(f Failing, timed bool) {
		f.Offset = f.At.Sub(v.Period.From)
		if timed {
			f.starved = starved.explains(f.At, 0)
		}
		steps = append(steps, f)
		out.Problems = append(out.Problems, f.problem)
	}
	if len(v.Recorded) == 0 || v.Recorded[0].Kind != history.KindRun {
		problem("the history does not begin with a run event")
	} else if err := v.Run.Timing.Validate(); err != nil {
		problem("the run's timing is not valid: %v", err)
	}
	for _, a := range v.Actions.All {
		switch {
		case a.Done:
			out.Actions++
		case a.State == history.ActionFailed || a.Failed:
			why := fmt.Sprintf("action %s (%s %s) failed: %s", a.ID, a.Verb, a.Target, text.Quoted(a.Failure()))
			failing(Failing{ID: a.ID, At: a.To, took: a.Length(), problem: why}, a.Length() >= v.DetectionBound()) // what is refused fails at once
		default:
			problem("action %s (%s %s) began and never ended", a.ID, a.Verb, a.Target)
		}
	}
	ended := false
	for e := range v.EachRecorded(history.KindExpectation, history.KindEnd) {
		switch e.Kind {
		case history.KindExpectation:
			if !e.Expectation.NotJudged {
				out.Expectations.Judged++
			}
			switch {
			case e.Expectation.OK:
			case e.Expectation.House && v.Run.SourceOnly:
				out.Expectations.House = append(out.Expectations.House, *e.Expectation)
			default:
				x := e.Expectation
				out.Expectations.Failed = append(out.Expectations.Failed, *x)
				why := fmt.Sprintf("expectation %s (%s %s) failed at %s: %s", x.ID, x.Mode, x.Text, text.Short(e.At.Sub(v.Period.From)), text.Quoted(x.Detail))
				failing(Failing{ID: x.ID, At: e.At, took: x.Took, problem: why}, true)
			}
		case history.KindEnd:
			ended = true
			if !e.End.Complete {
				problem("the history is incomplete: %s", text.Quoted(e.End.Problem))
			}
		}
	}
	if !ended {
		problem("the history has no end event: the run was cut off")
	}
	return steps
}

// Outcome is what a run came to.
type Outcome string

const (
	RunPassed       Outcome = "passed"
	RunFailed       Outcome = "failed"       // something did not hold, and CPU starvation does not explain all of it
	RunInconclusive Outcome = "inconclusive" // something did not hold, and CPU starvation explains all of it
)

// decide sets the outcome by what is failing. steps are the failed expectations and actions of it.
func (out *Verdict) decide(steps []Failing) {
	failed := len(out.Problems) > len(steps) || slices.ContainsFunc(out.Invariants, func(r Result) bool { return r.Status == Failed && len(r.Violations) == 0 })
	var explained []string
	for _, f := range out.Failing {
		switch {
		case f.layer == layerNothing && len(steps) > 0: // the scenario did not get that far
		case f.starved == "":
			failed = true
		default:
			explained = append(explained, fmt.Sprintf("%s at +%s: %s", f.ID, text.Short(f.Offset), f.starved))
		}
	}
	switch {
	case failed:
		out.Outcome = RunFailed
	case len(explained) > 0:
		out.Outcome, out.Inconclusive = RunInconclusive, explained
	default:
		out.Outcome, out.OK = RunPassed, true
	}
}

// countDuring is how many of what was judged was judged under a fault of each kind.
func countDuring(windows map[string]span.Set, judged []span.Span) map[string]int {
	out := map[string]int{}
	for kind, window := range windows {
		for _, s := range judged {
			if window.Overlaps(span.New(s.From, span.Latest(s.From, s.To).Add(1))) {
				out[kind]++
			}
		}
	}
	return out
}

// wrongForm is the form of every report that the reporters wrote or tried to write, if that is another one than the run is about.
func wrongForm(v *facts.Facts) string {
	conditions, typed := false, false
	for node := range v.Reports {
		for _, s := range v.Reports.Own(node) {
			conditions, typed = conditions || s.Value.Condition != nil, typed || len(s.Value.Typed) > 0
		}
	}
	for _, r := range v.Requests.All { // those that were refused: the CRD may not have the field
		if r.Node != "" && r.Write && r.IsApply() {
			conditions, typed = conditions || len(r.Body.Conditions) > 0, typed || len(r.Body.Typed) > 0
		}
	}
	switch {
	case v.Run.Contract == history.FormConditions && typed && !conditions:
		return history.FormHealthReports
	case v.Run.Contract == history.FormHealthReports && conditions && !typed:
		return history.FormConditions
	}
	return ""
}
