package result

import (
	"cmp"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/text"
)

type Status string

const (
	Passed       Status = "passed"
	Failed       Status = "failed"
	NotSupported Status = "not supported" // the backend cannot do what the scenario needs; not a pass
	CouldNotRun  Status = "could not run" // neither passed nor failed: something around it broke
	NotBegun     Status = "not begun"     // the time that the run was given was up before its turn; not a pass
	Inconclusive Status = "inconclusive"  // something did not hold, and CPU starvation explains all of it; neither passed nor failed
	Interrupted  Status = "interrupted"   // --fail-fast or Ctrl-C ended the run around it; neither passed nor failed
)

// Statuses are all of them, in the order of a summary.
func Statuses() []Status {
	return []Status{Passed, Failed, NotSupported, CouldNotRun, Inconclusive, Interrupted, NotBegun}
}

// Judged reports whether the checker has given the status.
func (s Status) Judged() bool { return s == Passed || s == Failed || s == Inconclusive }

// Bad reports whether a scenario was begun and did not pass.
func (s Status) Bad() bool {
	return s == Failed || s == CouldNotRun || s == Inconclusive || s == Interrupted
}

// Skipped reports whether nothing of the scenario was executed.
func (s Status) Skipped() bool { return s == NotSupported || s == NotBegun }

type Result struct {
	Scenario string `json:"scenario"`
	Title    string `json:"title"`
	Area     string `json:"area"`
	File     string `json:"file,omitempty"`
	Backend  string `json:"backend"`
	// Form is the wire form that reporters wrote: a value of history.Run.Contract.
	Form string `json:"form,omitempty"`
	// Plugin is the one under test, with its version; empty: the plugins are fake.
	Plugin string `json:"plugin,omitempty"`
	// Operator is the encryption operator under test; empty: there is no operator, or it is this project's.
	Operator string    `json:"operator,omitempty"`
	Seed     int64     `json:"seed"`
	Status   Status    `json:"status"`
	Began    time.Time `json:"began"`
	// Took is the whole time, with the preparation of the environment.
	Took time.Duration `json:"took"`
	// Preparation is the part of it before the run began; Waits are the longest, if time was real.
	Preparation time.Duration `json:"preparation,omitempty"`
	Waits       []Wait        `json:"waits,omitempty"`
	// JudgedAgain: the first try was inconclusive; this is the second, with nothing beside it. The first is below Dir, in FirstTryDir.
	JudgedAgain bool `json:"judgedAgain,omitempty"`
	// Reasons why there is neither a pass nor a failure, one sentence each.
	Reasons []string `json:"reasons,omitempty"`
	// Covers are the statements of the sources that the scenario exercised: all that it covers, if it passed.
	Covers []string `json:"covers,omitempty"`
	// Expectations counts what the scenario itself expected, the controls included; Checks what invariants looked at.
	Expectations int `json:"expectations"`
	Checks       int `json:"checks"`
	Events       int `json:"events"`
	// Failures are what was not as it should be, the first of each kind in full.
	Failures []Failure `json:"failures,omitempty"`
	// House are house rules that the system under test, which is not this project's, does not keep; they fail nothing.
	House []Failure `json:"house,omitempty"`
	// Unsuitable: the system under test cannot be judged by any scenario of the run as it was asked for; Reasons say why.
	Unsuitable bool `json:"unsuitable,omitempty"`
	// Notes are what somebody should know and nothing is judged by.
	Notes []string `json:"notes,omitempty"`
	// FailedBoots are the likely causes why a control plane for it did not come up at the first attempt, or at both.
	FailedBoots []string `json:"failedBoots,omitempty"`
	// Reproduce is the command that runs it again; Dir has the artifacts.
	Reproduce string `json:"reproduce,omitempty"`
	Dir       string `json:"dir,omitempty"`
}

// On is the backend, with the wire form where that is not the default, and with the plugin or the operator under test.
func (r Result) On() string {
	on := r.Backend
	if r.OtherForm() {
		on += " (" + r.Form + ")"
	}
	if r.Plugin != "" {
		on += " with plugin " + r.Plugin
	}
	if r.Operator != "" {
		on += " with operator " + r.Operator
	}
	return on
}

func (r Result) OtherForm() bool { return r.Form != "" && r.Form != history.FormConditions }

// StatusText is the status, and whether it is that of a second try.
func (r Result) StatusText() string {
	if r.JudgedAgain {
		return string(r.Status) + " (judged again alone)"
	}
	return string(r.Status)
}

// Failure is one thing that was not as it should be.
type Failure struct {
	// ID is an invariant, or the place of an expectation or action in the scenario: "steps[3].expect".
	ID string `json:"id"`
	// Rule is the part of the invariant that was violated, where it has a code.
	Rule string `json:"rule,omitempty"`
	// At is when, Offset since the run began; zero if it has no instant.
	At     time.Time     `json:"at"`
	Offset time.Duration `json:"offset"`
	// Where names node and plugin, as far as it has any.
	Where   string `json:"where,omitempty"`
	Seen    string `json:"seen"`
	Allowed string `json:"allowed,omitempty"`
	// Because names what caused it, where that is a failure of its own.
	Because string `json:"because,omitempty"`
	// House is the decision of this project that it is about, if it is about one alone.
	House string `json:"house,omitempty"`
	// Repeated are expectations that failed later in the same way, where steps went on.
	Repeated []string `json:"repeated,omitempty"`
	// More violations of the same invariant that are not shown.
	More int `json:"more,omitempty"`
}

// Code names what failed as exactly as possible: INVARIANT/rule.
func (f Failure) Code() string { return check.Code(f.ID, f.Rule) }

// When is since the beginning and by the clock; empty if it has no instant.
func (f Failure) When() string {
	if f.At.IsZero() {
		return ""
	}
	return fmt.Sprintf(" at +%.3fs (%s)", f.Offset.Seconds(), f.At.UTC().Format("15:04:05.000Z"))
}

func (f Failure) String() string {
	line := f.Code() + f.When()
	if f.Where != "" {
		line += " " + f.Where
	}
	line += ": " + f.Seen
	if f.Allowed != "" {
		line += "; allowed: " + f.Allowed
	}
	if f.More > 0 {
		line += fmt.Sprintf(" (and %d more)", f.More)
	}
	return line
}

//go:embed text.tmpl
var textTemplate string // go:embed needs a variable

var texts = template.Must(template.New("").Funcs(template.FuncMap{
	"indent": Indent,
	"join":   func(list []string) string { return strings.Join(list, ", ") },
	"tenths": text.Tenths,
	"upper":  func(s Status) string { return strings.ToUpper(string(s)) },
}).Parse(textTemplate))

// Text is what is shown of a scenario that did not pass, or that has notes; the whole verdict is in its directory.
func (r Result) Text() string {
	var b strings.Builder
	if err := texts.ExecuteTemplate(&b, "result", r); err != nil {
		return fmt.Sprintf("%s: %s: %v\n", r.Scenario, r.Status, err)
	}
	return b.String()
}

// FirstTry is the folder of the first try of a scenario that was judged again.
func (r Result) FirstTry() string { return filepath.Join(r.Dir, FirstTryDir) }

// maxLineChars bounds one line of a text that came from outside.
const maxLineChars = 4096

// Indent keeps a text of several lines below its first, and each line safe for a terminal: plugins may say anything.
func Indent(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, line := range lines {
		lines[i] = contract.SafeText(line, maxLineChars)
	}
	return strings.Join(lines, "\n               ")
}

// maxWaits is how many of the longest waits are kept of a scenario, and shown of a run.
const maxWaits = 5

// Wait is a part of a scenario for which the engine waited.
type Wait struct {
	For  string        `json:"for"` // "preparation of 3 nodes", "steps[3].expect within 30s", "steps[2] restart reporter/cp-1"
	Took time.Duration `json:"took"`
}

// Waited stores how long the preparation of the environment took, and the longest waits of the run. Waits of one scenario can overlap,
// because its steps can. It is not for virtual time, in which nothing waits.
func (r *Result) Waited(preparation time.Duration, nodes int, events []history.Event) {
	r.Preparation = preparation
	all := append([]Wait{{fmt.Sprintf("preparation of %s", text.Count(nodes, "node")), preparation}}, waits(events)...)
	all = slices.DeleteFunc(all, func(w Wait) bool { return text.Tenths(w.Took) <= 0 })
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Compare(b.Took, a.Took) })
	r.Waits = all[:min(len(all), maxWaits)]
}

// waits are the expectations and actions of a history, and the end of its recording.
func waits(events []history.Event) []Wait {
	var out []Wait
	began := map[string]time.Time{} // actions by ID; the end of the recording by ""
	for _, e := range events {
		switch {
		case e.Expectation != nil:
			x := e.Expectation
			mode := x.Mode
			if mode != "within" { // "holds" and "never" last as long as they say
				mode = "for"
			}
			out = append(out, Wait{fmt.Sprintf("%s %s %v", x.ID, mode, x.Bound), x.Took})
		case e.Action != nil && e.Action.State == history.ActionBegan:
			began[e.Action.ID] = e.At
		case e.Action != nil && !began[e.Action.ID].IsZero():
			out = append(out, Wait{strings.TrimSpace(e.Action.ID + " " + e.Action.Verb + " " + e.Action.Target), e.At.Sub(began[e.Action.ID])})
		case e.Phase != nil && e.Phase.Name == history.PhaseEnd:
			began[""] = e.At
		case e.End != nil && !began[""].IsZero():
			out = append(out, Wait{"end of the recording", e.At.Sub(began[""])})
		}
	}
	return out
}
