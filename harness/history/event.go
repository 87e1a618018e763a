package history

import (
	"reflect"
	"strings"
	"time"
)

// Schema names the format; a reader refuses what it does not know.
const Schema = "kmsharness.io/history/v1"

// Kind says which payload an event carries.
type Kind string

const (
	KindRun              Kind = "run"         // first event: what was run, with which timing
	KindPhase            Kind = "phase"       // engine: before, steps, after, end
	KindAction           Kind = "action"      // engine: an action began, was done or failed
	KindExpectation      Kind = "expectation" // engine: an expectation of the scenario was judged
	KindExpected         Kind = "expected"    // backend: which nodes and plugins should report from now on
	KindCall             Kind = "call"        // plugin journal: one Status, Encrypt or Decrypt
	KindRequest          Kind = "request"     // audit log: one API request by a watched identity or to a watched object
	KindObject           Kind = "object"      // watch: a new state of the operator CR or the ClusterOperator
	KindProcess          Kind = "process"     // backend: a process changed state
	KindContainer        Kind = "container"   // backend: a container changed state, as its engine tells it
	KindLink             Kind = "link"        // backend: a network link changed state
	KindClock            Kind = "clock"       // backend: a clock was set
	KindRefusal          Kind = "refusal"     // backend: API servers refuse requests, or no longer do
	KindWatches          Kind = "watches"     // backend: how late an API server tells of changes
	KindEnvelope         Kind = "envelope"    // API server log or remote KMS journal: one hop of an envelope operation
	KindMetrics          Kind = "metrics"     // scrape: what a reporter's metrics say of its plugins, when that changed
	KindKEKs             Kind = "keks"        // observe: the kekIDs that an API server had from its plugins, at each scrape
	KindSockets          Kind = "sockets"     // backend: the files of a node's sockets, when they changed
	KindStarvation       Kind = "stall"       // harness: a process got no processor for a while
	KindData             Kind = "data"        // backend: an encrypted object was written, read back or inspected in etcd
	KindEncryption       Kind = "encryption"  // backend: an API server was told an encryption configuration, or has loaded it
	KindStorageInventory Kind = "census"      // backend: by which keys the objects in etcd are encrypted
	KindDecision         Kind = "decision"    // backend: what the API server operator decided, when that changed
	KindSecrecy          Kind = "secrecy"     // recorders: a log was searched for what must not be in it
	KindAttempt          Kind = "attempt"     // backend: how an aggregator answered a stream that the scenario attempted
	KindEnd              Kind = "end"         // last event: the run is complete, nothing was lost
)

// Event is one line of a history. Exactly the payload that Kind names is set.
type Event struct {
	// Seq numbers events in the order in which they were recorded; recorders that tail a file are a little late, so
	// order in time is by At, then Seq.
	Seq int64 `json:"seq"`
	// At is when it happened, in UTC.
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Source is the recorder: "engine", "backend", "watch", "journal/cp-1/1", "audit/cp-1", "remote-kms" …
	Source string `json:"source"`
	// APIServer is the further API server that this is about; empty: kube-apiserver, or what all share. See About.
	APIServer string `json:"apiServer,omitempty"`

	Run              *Run              `json:"run,omitempty"`
	Phase            *Phase            `json:"phase,omitempty"`
	Action           *Action           `json:"action,omitempty"`
	Expectation      *Expectation      `json:"expectation,omitempty"`
	Expected         *Expected         `json:"expected,omitempty"`
	Call             *Call             `json:"call,omitempty"`
	Request          *Request          `json:"request,omitempty"`
	Object           *Object           `json:"object,omitempty"`
	Process          *Process          `json:"process,omitempty"`
	Container        *Container        `json:"container,omitempty"`
	Link             *Link             `json:"link,omitempty"`
	Clock            *Clock            `json:"clock,omitempty"`
	Refusal          *Refusal          `json:"refusal,omitempty"`
	Watches          *Watches          `json:"watches,omitempty"`
	Envelope         *Envelope         `json:"envelope,omitempty"`
	Metrics          *Metrics          `json:"metrics,omitempty"`
	KEKs             *KEKs             `json:"keks,omitempty"`
	Sockets          *Sockets          `json:"sockets,omitempty"`
	Starvation       *Starvation       `json:"stall,omitempty"`
	Data             *Data             `json:"data,omitempty"`
	Encryption       *Encryption       `json:"encryption,omitempty"`
	StorageInventory *StorageInventory `json:"census,omitempty"`
	Decision         *Decision         `json:"decision,omitempty"`
	Secrecy          *Secrecy          `json:"secrecy,omitempty"`
	Attempt          *Attempt          `json:"attempt,omitempty"`
	End              *End              `json:"end,omitempty"`
}

// fieldOf is the field of Event that holds the payload of a kind, and kindOf the kind of a type of payload. A kind is the name of its payload in JSON.
var fieldOf, kindOf = func() (map[Kind]int, map[reflect.Type]Kind) {
	fields, kinds := map[Kind]int{}, map[reflect.Type]Kind{}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Event]()) {
		if f.Type.Kind() == reflect.Pointer {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields[Kind(name)], kinds[f.Type] = i, Kind(name)
		}
	}
	return fields, kinds
}()

// payload is what e has of a kind that there is.
func (e *Event) payload(k Kind) reflect.Value { return reflect.ValueOf(e).Elem().Field(fieldOf[k]) }
