package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/view"
)

// ticksPerInterval is how often in an interval an expression that uses time (an age) is evaluated although nothing
// happened. So such an expectation is met at most a tenth of an interval late.
const ticksPerInterval = 10

// expectation judges one expression over a span of time: "within" until it is true, "holds" while it must be, "never"
// while it must not.
type expectation struct {
	run     *run
	id      string
	mode    scenario.Mode
	program *view.Program
	given   *view.Program // what it assumes; nil: nothing
	assumed bool          // given was true
	bound   time.Duration // as written, resolved
	house   bool          // it rests on a decision of this project
	control bool          // of the phase, not of the scenario
	broken  string        // why the expression could not be compiled, which validation excludes

	started  bool
	began    time.Time
	deadline time.Time
	version  int       // of the state that was judged last
	tick     time.Time // when to judge again although nothing happened; zero for never
}

func (r *run) expect(e scenario.Expectation, id string) *expectation {
	x := &expectation{run: r, id: id, mode: e.Mode, bound: r.resolve(e.Bound), house: e.Origin == scenario.OriginHouse}
	program, issues := r.compiler.Compile(e.CEL)
	if program == nil {
		x.broken = fmt.Sprintf("%s: %v", e.CEL, issues)
	}
	x.program = program
	if e.Given != "" {
		if x.given, issues = r.compiler.Compile(e.Given); x.given == nil {
			x.broken = fmt.Sprintf("%s: %v", e.Given, issues)
		}
	}
	return x
}

func (x *expectation) advance(now time.Time) bool {
	over := x.read(now)
	if over && x.started {
		x.run.looking--
	}
	return over
}

func (x *expectation) read(now time.Time) bool {
	if x.broken != "" {
		x.end(now, false, x.broken)
		return true
	}
	first := !x.started
	if first {
		x.begin(now)
	}
	if x.run.failed {
		return true // something beside it failed: there is no verdict on this one
	}
	late := now.After(x.deadline)
	at := earlier(now, x.deadline)
	changed := x.version != x.run.version || !x.tick.IsZero() && !now.Before(x.tick)
	if first || late || changed || !now.Before(x.deadline) {
		return x.judge(at, !now.Before(x.deadline))
	}
	return false
}

// begin starts the clock of the bound. Only "within" gets the tolerance of the backend: it allows for late records, and
// a state that must hold is not made easier by more time.
func (x *expectation) begin(now time.Time) {
	x.started, x.began = true, now
	x.run.looking++
	x.deadline = now.Add(x.bound)
	if x.mode == scenario.ModeWithin {
		x.deadline = x.deadline.Add(x.run.metadata.Tolerance)
	}
	x.run.progress("%s %s %s %v", x.id, oneLine(x.program.Text()), x.mode, x.bound)
}

// judge evaluates at an instant up to the deadline. What becomes known only after the deadline does not count: the task
// is advanced to an event's instant before the event is folded.
func (x *expectation) judge(at time.Time, last bool) (over bool) {
	x.version = x.run.version
	x.assumed = x.assumed || x.given == nil || x.given.Eval(x.run.state, at)
	x.tick = time.Time{} // a tick that has passed would be due for ever
	if x.program.UsesTime() || !x.assumed && x.given.UsesTime() {
		x.tick = at.Add(x.run.metadata.Timing.Interval / ticksPerInterval)
	}
	value := x.program.Eval(x.run.state, at)
	switch {
	case x.mode == scenario.ModeWithin && value:
		x.end(at, true, "")
	case x.mode == scenario.ModeWithin && last, x.mode == scenario.ModeHolds && !value, x.mode == scenario.ModeNever && value:
		x.end(at, false, x.program.Explain(x.run.state, at))
	case last:
		x.end(at, true, "")
	default:
		return false
	}
	return true
}

func (x *expectation) end(at time.Time, ok bool, detail string) {
	took := at.Sub(x.began)
	e := history.Expectation{ID: x.id, Mode: string(x.mode), OK: ok, House: x.house, Detail: detail, Bound: x.bound, Took: took}
	if x.program != nil {
		e.Text = x.program.Text()
	}
	word := "met"
	switch {
	case !ok && x.given != nil && !x.assumed:
		e.OK, e.NotJudged, e.Given, word = true, true, x.given.Text(), "not judged, for this was never true: "+oneLine(x.given.Text())
	case ok:
	case x.house && x.run.opts.SourceOnly:
		word = "not met (a house rule)"
	default:
		word = "NOT met"
		var seen []string
		if x.program != nil {
			seen = x.program.Values(x.run.state, at)
		}
		e.Repeats = x.run.miss(x.id, seen, x.control)
	}
	x.run.record(at, &e)
	line := fmt.Sprintf("%s %s after %v of %v", x.id, word, took.Round(time.Millisecond), x.bound)
	if !ok {
		line += ": " + detail
	}
	x.run.progress("%s", line)
}

func (x *expectation) due() time.Time { return soonest(x.deadline, x.tick) }

// oneLine is an expression on one short line. Each alternative is shortened, so that none is lost.
func oneLine(text string) string {
	const most, least = 100, 30
	alternatives := strings.Split(strings.Join(strings.Fields(text), " "), " || ")
	for i, a := range alternatives {
		if runes := []rune(a); len(runes) > max(most/len(alternatives), least) {
			alternatives[i] = string(runes[:max(most/len(alternatives), least)]) + " …"
		}
	}
	return strings.Join(alternatives, " || ")
}
