package check

import (
	"fmt"
	"slices"
	"time"
)

// Invariant is one sentence that holds on every history.
type Invariant struct {
	// ID is stable: it appears in reports, scenarios excuse it by this name.
	ID        string
	Statement string
	// Source is the section of the contract that the sentence comes from.
	Source string
	// House are the decisions of this project that parts of it rest on; empty if it rests on sources alone. See Violation.House.
	House []string

	// Timed is whether a delay can cause a violation: CPU starvation explains no other.
	Timed TimedPart
	// Judge finds what does not hold. It must not change the facts.
	Judge func(*Facts) Finding
}

// Violation is one instant at which an invariant did not hold.
type Violation struct {
	Invariant string        `json:"invariant"`
	At        time.Time     `json:"at"`
	Offset    time.Duration `json:"offset"` // from the beginning of the run
	// Seq is the event of the history that shows it, 0 where the absence of an event is the violation.
	Seq   int64  `json:"seq,omitempty"`
	Node  string `json:"node,omitempty"`
	KeyID string `json:"keyID,omitempty"`
	// APIServer is the further API server that it is about; empty: kube-apiserver, or what all share.
	APIServer string `json:"apiServer,omitempty"`
	Seen      string `json:"seen"`
	Allowed   string `json:"allowed"`
	// Because names what caused it, where that is a violation of its own.
	Because string `json:"because,omitempty"`
	// House is the decision of this project that was not kept, where no source makes the promise: "[decided here]" in the contract.
	House string `json:"house,omitempty"`
	// From and To are the window in which what is allowed was due: from its cause to the last instant that the bound permits. Both
	// are zero where the invariant has no bound.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`

	since    time.Time // when its cause began, where that is not From
	harmless bool      // it has no consequences
	timed    bool      // a delay can have caused it; see SomeTimed
}

// Measure is something that was measured while judging.
type Measure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MaxViolations bounds how many violations of one invariant a verdict has; all are counted.
const MaxViolations = 20

// maxKept bounds how many violations of one invariant a finding has. It is more than MaxViolations, because a starved machine can cause many.
const maxKept = 100

type Finding struct {
	// Judged counts what was looked at: writes, entries, changes or spans of time, as fits the invariant.
	Judged     int
	Violations []Violation // the first maxKept in the order found
	Count      int         // of all violations
	when       []stretch   // of what was judged
	Measures   []Measure
}

// JudgedAt counts something that was looked at, and when it was.
func (f *Finding) JudgedAt(from, to time.Time) {
	f.Judged++
	f.when = append(f.when, stretch{from.UnixNano(), to.UnixNano()})
}

// stretch is a span in a third of its space, of which there are very many.
type stretch struct{ from, to int64 } // Unix time in nanoseconds

// Violate adds a violation; Invariant and Offset are filled in later.
func (f *Finding) Violate(v Violation) {
	f.Count++
	if len(f.Violations) < maxKept {
		f.Violations = append(f.Violations, v)
	}
}

func (f *Finding) measure(name string, value any) {
	f.Measures = append(f.Measures, Measure{Name: name, Value: fmt.Sprint(value)})
}

// Invariants are all invariants, in the order in which they are shown.
func Invariants() []Invariant {
	return []Invariant{
		noExit(), accepted(), falseHealthy(), falseAlarm(), detection(), recovery(), staleUnknown(), absenceIsNotBroken(), noOrphan(),
		noResurrection(), ownership(), monotonic(), freshOnly(), cadence(), truthfulProbe(), format(), rollupTruth(),
		quiet(), union(), convergence(), uid(), noDataLoss(), switchOrder(), operatorConvergence(), leastPrivilege(), streamTruth(), keyIDStable(), nothingSecret(), noForgedExcuse(), nothingRan(),
	}
}

// House rules that parts of invariants rest on: decisions of this project, marked "[decided here]" in the contract, where the sources are silent. A
// program of somebody else that breaks one of them breaks no promise.
const (
	houseUnusable  = "an ok with a key_id that cannot be used, or with another version, is unhealthy"
	houseTries     = "whatever a write is refused with, the next try is that of the next interval"
	houseRemoval   = "a reporter that ends leaves its entry, which the aggregator removes once nobody needs it"
	houseReasons   = "the reasons of the rollups, and which of several is shown"
	houseBound     = "the message of a rollup has at most 4096 characters"
	houseAttempt   = "an attempt to encrypt everything anew ends when a node no longer agrees on the kekID"
	houseRestraint = "an aggregator that is refused asks at most ten times in a second, and keeps to Retry-After"
)

// takeHouse takes the violations of house rules out of a finding.
func (f *Finding) takeHouse() (house []Violation) {
	for _, x := range f.Violations {
		if x.House != "" {
			house = append(house, x)
		}
	}
	f.Violations = slices.DeleteFunc(slices.Clone(f.Violations), func(x Violation) bool { return x.House != "" })
	f.Count -= len(house)
	return house
}
