package fault

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// Plan is what goes wrong with one call. The zero value is an honest answer. It is carried out in the order of its
// fields: wait, then die or break or fail, else answer with edits.
type Plan struct {
	Faults []string // names of the faults that shaped it
	UID    UID      // what became of the request's uid
	Holds  []Wait
	Crash  bool // the plugin goes down in mid-call
	Reset  *Reset
	Error  *Error
	Nil    NilForm
	Edits  []Edit
}

// UID is what becomes of the uid of a request before the plugin sees it.
type UID string

const (
	UIDDropped UID = "dropped" // lost, and the plugin does not mind
	UIDRefused UID = "refused" // lost, and the plugin insists on one
)

// Wait is a wait. It always ends with the call's context.
type Wait struct {
	ID       string        // of the fault
	For      time.Duration // 0: no limit of its own
	Deadline bool          // only the caller's deadline ends it: the release of its fault does not
	Released <-chan struct{}
}

// Reset breaks the call's connection.
type Reset struct {
	After    time.Duration // into the call
	Truncate bool          // send the first bytes of an answer, then break
}

// Error is a gRPC status.
type Error struct {
	Code codes.Code
	Text string
}

// NilForm is how a response is missing.
type NilForm string

const (
	NilEmpty NilForm = "empty" // a message without any field: what a Go plugin sends for a nil response
	NilNone  NilForm = "none"  // status OK without a message
)

// Field of a response.
type Field string

const (
	FieldHealthz    Field = "healthz"
	FieldVersion    Field = "version"
	FieldKeyID      Field = "key-id"
	FieldCiphertext Field = "ciphertext"
	FieldAnnotation Field = "annotation"
)

// Edit changes a field of an honest response.
type Edit struct {
	Field      Field
	Value      string
	Annotation string // the key, for FieldAnnotation
	PadTo      int    // keep the honest value and make it this many bytes long
	KEKVersion int    // for FieldKeyID: the id of that version of the KEK
}

// Active is a fault in force. It is a value: Decide returns how it changed.
type Active struct {
	ID       string
	Fault    Fault
	Injected time.Time
	Hits     int // calls that it struck
	// StatusHits counts Status calls alone: a plugin that flips its key_id names the flipped one in Encrypt too.
	StatusHits int
	tokens     float64 // of a rate limit, and when they were last counted
	counted    time.Time
}

// activeJSON is a fault in force as the control API shows it.
type activeJSON struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Params   map[string]any `json:"params"`
	Injected time.Time      `json:"injected"`
	Hits     int            `json:"hits"`
	Spent    bool           `json:"spent"`
}

// MarshalJSON writes a as the control API shows it.
func (a Active) MarshalJSON() ([]byte, error) {
	return json.Marshal(activeJSON{a.ID, a.Fault.Name, a.Fault.Params(), a.Injected.UTC(), a.Hits, a.Spent()})
}

// UnmarshalJSON reads what MarshalJSON writes, of a plugin that may have faults of its own. Such a fault can be shown and released, not injected.
func (a *Active) UnmarshalJSON(data []byte) error {
	var in activeJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("read a fault in force: %w", err)
	}
	f := Fault{Name: in.Name, Probability: 1, values: in.Params}
	for _, p := range (Definition{Shape: func(*Strike) {}}).Bounds() { // those that it has: a fault of the socket has no methods
		if written, ok := in.Params[p.Name]; ok {
			if err := f.bind(p, written); err != nil {
				return fmt.Errorf("read a fault in force: %w", err)
			}
		}
	}
	*a = Active{ID: in.ID, Fault: f, Injected: in.Injected, Hits: in.Hits}
	return nil
}

// Over says whether the fault's time is over.
func (a Active) Over(now time.Time) bool {
	return a.Fault.For > 0 && now.Sub(a.Injected) >= a.Fault.For
}

// Spent says whether the fault has struck as many calls as it may.
func (a Active) Spent() bool { return a.Fault.Count > 0 && a.Hits >= a.Fault.Count }

// Rand is the random source of a decision.
type Rand interface{ Float64() float64 }

// Strike is one fault that strikes one call: what a Definition's Shape reads, and the plan that it changes.
type Strike struct {
	*Active
	Method Method
	Now    time.Time
	Rand   Rand
	Plan   *Plan
	missed bool
}

// Miss lets the call pass: it does not count as a hit.
func (s *Strike) Miss() { s.missed = true }

func (s *Strike) Edit(e Edit) { s.Plan.Edits = append(s.Plan.Edits, e) }

// Decide says what goes wrong with a call of m at now. It changes the hits of the faults that struck in place.
// Faults are combined in the order in which they were injected; where they contradict, the later wins.
func Decide(active []Active, m Method, now time.Time, rng Rand) Plan {
	var plan Plan
	for i := range active {
		a := &active[i]
		could := a.Fault.definition.strikesCalls() && !a.Over(now) && !a.Spent() && slices.Contains(a.Fault.Methods, m)
		if !could || a.Fault.Probability < 1 && rng.Float64() >= a.Fault.Probability {
			continue
		}
		s := Strike{Active: a, Method: m, Now: now, Rand: rng, Plan: &plan}
		a.Fault.definition.Shape(&s)
		if s.missed {
			continue
		}
		plan.Faults = append(plan.Faults, a.Fault.Name)
		a.Hits++
		if m == Status {
			a.StatusHits++
		}
	}
	return plan
}
