// Package invariants has the sentences that hold on every history, each judged from facts alone and in a file of its own.
//
// Nothing is judged while the truth is unknown (between two calls, while no aggregator can run). Judgements are
// counted, so that an empty verdict is visible.
package invariants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
)

// Invariant is one sentence that holds on every history.
type Invariant struct {
	// ID is stable: it appears in reports, scenarios excuse it by this name.
	ID        string
	Statement string
	// Source is the section of the contract that the sentence comes from.
	Source string
	// Rules are the parts that a certificate tells apart, and those that rest on decisions of this project.
	Rules []Rule
	// Promise of an aggregator that it is about; empty: it is about none. A run whose aggregator does not make it is not judged.
	Promise contract.Promise

	// Watched: what watches of objects show is enough to judge it. Only such invariants judge a run that was observed.
	Watched bool

	// Timed is whether a delay can cause a violation: CPU starvation explains no other.
	Timed TimedPart
	// Judge finds what does not hold. It must not change the facts.
	Judge func(*facts.Facts) Finding
}

// TimedPart is how much of what an invariant judges is a matter of time.
type TimedPart int

const (
	NoneTimed TimedPart = iota // content or order
	SomeTimed                  // the violations that are marked as timed
	AllTimed                   // a bound
)

// Rule is a part of an invariant.
type Rule struct {
	// Code is stable, as the ID of the invariant: INVARIANT/code names the rule.
	Code      string
	Statement string
	// House marks a decision of this project, "[decided here]" in the contract, where the sources are silent. A program of somebody else that breaks
	// it breaks no promise.
	House bool
}

// houseReasons is a rule of three invariants.
const houseReasons = "the reasons of the rollups, and which of several is shown"

// Violation is one instant at which an invariant did not hold. Its JSON is part of verdict.json.
type Violation struct {
	Invariant string        `json:"invariant"`
	Rule      string        `json:"rule,omitempty"` // the code of a Rule; empty if it is about the rest of the invariant
	At        time.Time     `json:"at"`
	Offset    time.Duration `json:"offset"` // from the beginning of the run
	// Seq is the event of the history that shows it, 0 where the absence of an event is the violation.
	Seq   int64  `json:"seq,omitempty"`
	Node  string `json:"node,omitempty"`
	KeyID string `json:"keyID,omitempty"`
	// APIServer is the aggregated API server that it is about; empty: kube-apiserver, or what all share.
	APIServer string `json:"apiServer,omitempty"`
	Seen      string `json:"seen"`
	Allowed   string `json:"allowed"`
	// Because names what caused it, where that is a violation of its own.
	Because string `json:"because,omitempty"`
	// House is the statement of Rule, where that is a decision of this project.
	House string `json:"house,omitempty"`
	// From and To are the window in which what is allowed was due: from its cause to the last instant that the bound permits. Both
	// are zero where the invariant has no bound.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`

	Since    time.Time `json:"-"` // when its cause began, where that is not From
	Harmless bool      `json:"-"` // it has no consequences
	Timed    bool      `json:"-"` // a delay can have caused it; see SomeTimed
}

// Measure is something that was measured while judging.
type Measure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// maxKept bounds how many violations of one invariant a finding has. It is more than a verdict shows, because a starved
// machine can cause many.
const maxKept = 100

// Finding is what an invariant found on the history of one API server, or, after Add, of several. Judged is what makes a
// pass worth something: an invariant that judged nothing has not been tested by the run.
type Finding struct {
	// Judged counts what was judged: writes, entries, changes or spans of time, as fits the invariant.
	Judged     int
	Violations []Violation // the first maxKept in the order found
	Count      int         // of all violations
	When       []span.Span // of what was judged
	Measures   []Measure
	Latencies  []time.Duration // from a change to when it was visible, of DETECTION and RECOVERY
}

// JudgedAt counts something that was judged, and when it was.
func (f *Finding) JudgedAt(from, to time.Time) {
	f.Judged++
	f.When = append(f.When, span.New(from, to))
}

func (f *Finding) judgedIn(s span.Span) { f.JudgedAt(s.From, s.To) }

// judgedThrough counts what was judged in all of a set that is not empty.
func (f *Finding) judgedThrough(s span.Set) { f.JudgedAt(s.Begin(), s[len(s)-1].To) }

// Violate adds a violation; Invariant, Offset and House are filled in later.
func (f *Finding) Violate(v Violation) {
	f.Count++
	if len(f.Violations) < maxKept {
		f.Violations = append(f.Violations, v)
	}
}

func (f *Finding) measure(name string, value any) {
	f.Measures = append(f.Measures, Measure{Name: name, Value: fmt.Sprint(value)})
}

// Add takes in what was found of an aggregated API server.
func (f *Finding) Add(name string, of Finding) {
	f.Judged, f.Count, f.When, f.Latencies = f.Judged+of.Judged, f.Count+of.Count, append(f.When, of.When...), append(f.Latencies, of.Latencies...)
	for _, x := range of.Violations {
		x.Seen, x.APIServer = name+": "+x.Seen, name
		f.Violations = append(f.Violations, x)
	}
	for _, m := range of.Measures {
		f.Measures = append(f.Measures, Measure{name + ": " + m.Name, m.Value})
	}
}

// TakeHouse takes the violations of house rules out of a finding and returns them. A program of others that breaks one
// is not wrong: the verdict lists them and does not fail, except with --strict.
func (f *Finding) TakeHouse() []Violation {
	house := slices.DeleteFunc(slices.Clone(f.Violations), func(x Violation) bool { return x.House == "" })
	f.Violations = slices.DeleteFunc(slices.Clone(f.Violations), func(x Violation) bool { return x.House != "" })
	f.Count -= len(house)
	return house
}

// House is the statement of a rule that is a decision of this project; empty for others.
func (i Invariant) House(rule string) string {
	for _, r := range i.Rules {
		if r.Code == rule && r.House {
			return r.Statement
		}
	}
	return ""
}

// Code names what was violated: the invariant, and the rule if it has one.
func Code(id, rule string) string {
	if rule == "" {
		return id
	}
	return id + "/" + rule
}

// allowedAt returns what the truths of the last A plus tolerance before at allowed, as text for a violation.
func allowedAt(v *facts.Facts, at time.Time, show func(facts.Rollups) string) string {
	var all []string
	for _, t := range v.Truths.Near(span.New(at, at.Add(1))) {
		for _, r := range t.Allowed {
			all = append(all, show(r))
		}
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(slices.Compact(all), " or "), "nothing")
}
