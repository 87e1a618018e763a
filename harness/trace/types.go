package trace

import "time"

// Parties of an operation, in the order in which they have a part in it.
const (
	APIServer = "kube-apiserver"
	Plugin    = "plugin"
	RemoteKMS = "remote-kms"
)

const (
	Encrypt = "encrypt"
	Decrypt = "decrypt"
)

// Trace is what a history tells of envelope operations.
type Trace struct {
	Scenario   string      `json:"scenario"`
	Backend    string      `json:"backend"`
	From       time.Time   `json:"from"`
	To         time.Time   `json:"to"`
	Operations []Operation `json:"operations"` // in time
	Requests   []Request   `json:"requests"`   // for encrypted objects, in time
	Objects    []Object    `json:"objects"`    // by name
}

// Operation is one call for a plugin: a new DEK source is sealed, or an old one opened.
type Operation struct {
	UID    string `json:"uid"` // empty: the record has none
	Op     string `json:"op"`
	Node   string `json:"node,omitempty"`
	KeyID  string `json:"keyID,omitempty"` // of the plugin
	KEKID  string `json:"kekID,omitempty"`
	Object string `json:"object,omitempty"` // decrypt: for whose sake
	// Source is the digest of the encrypted DEK source.
	Source string        `json:"dekSource,omitempty"`
	Began  time.Time     `json:"began"`
	Took   time.Duration `json:"took"` // until the last hop ended
	OK     bool          `json:"ok"`
	Error  string        `json:"error,omitempty"`
	Hops   []Hop         `json:"hops"`
	// Request is the API request that it was a part of, by node, object and time; "" where that does not name exactly one.
	Request string `json:"request,omitempty"`
	// Background, decrypt: no request was behind it, but the API server's own cache.
	Background bool `json:"background,omitempty"`
	// Sealed are the writes of objects with the key that this Encrypt sealed.
	Sealed []Use `json:"sealed,omitempty"`
	Gaps   []Gap `json:"gaps,omitempty"`
}

// Hop is the operation as one party saw it.
type Hop struct {
	Party string    `json:"party"`
	Began time.Time `json:"began"`
	// Took is 0 of the API server: it logs the beginning only.
	Took   time.Duration `json:"took"`
	OK     bool          `json:"ok"`
	Text   string        `json:"text"`
	Source string        `json:"source"` // of the event in the history
	Seq    int64         `json:"seq"`
}

func (h Hop) ended() time.Time { return h.Began.Add(h.Took) }

// Use is a write of an object with a DEK.
type Use struct {
	Object string    `json:"object"`
	Node   string    `json:"node,omitempty"`
	Verb   string    `json:"verb,omitempty"`
	At     time.Time `json:"at"`
	UID    string    `json:"uid"` // of the Encrypt that sealed the DEK
	Seq    int64     `json:"seq"`
}

// Request is an API request for an encrypted object, from an audit log.
type Request struct {
	AuditID  string        `json:"auditID"`
	Node     string        `json:"node"` // of the API server
	Verb     string        `json:"verb"`
	Object   string        `json:"object"`
	User     string        `json:"user"`
	Code     int           `json:"code"`
	Received time.Time     `json:"received"`
	Took     time.Duration `json:"took"`
	// Operations are the uids of the envelope operations in it: none, or several of a list.
	Operations []string `json:"operations,omitempty"`
	// DEK is the uid of the Encrypt whose DEK a write used.
	DEK string `json:"dek,omitempty"`
	// Why there was no operation in it.
	Why string `json:"why,omitempty"`
}

// Object is one encrypted object, with all that is known of its keys.
type Object struct {
	Name   string   `json:"name"` // "secrets/NAMESPACE/NAME"
	Stored []Stored `json:"stored,omitempty"`
	// Requests are the audit ids of its requests, Decrypts the uids of what opened its key.
	Requests []string `json:"requests,omitempty"`
	Decrypts []string `json:"decrypts,omitempty"`
}

// Stored is how the object lay in etcd at an instant, and which Encrypt sealed its key.
type Stored struct {
	At       time.Time `json:"at"`
	Provider string    `json:"provider"`
	KEKID    string    `json:"kekID,omitempty"`
	Source   string    `json:"dekSource,omitempty"`
	// Encrypt is the uid of the operation that sealed the key; By says how it is known.
	Encrypt string `json:"encrypt,omitempty"`
	By      string `json:"by,omitempty"`
	// Why it is not known, or in doubt.
	Why string `json:"why,omitempty"`
}

// Gap is a party that does not have the operation, and why.
type Gap struct {
	Party string `json:"party"`
	// Reason is one of the constants; Text says it of this operation.
	Reason Reason `json:"reason"`
	Text   string `json:"text"`
}

type Reason string

const (
	NoUID     Reason = "no-uid"     // nothing to join by
	UIDReused Reason = "uid-reused" // more than one operation has it
	NoLog     Reason = "no-log"     // the party is not in this history at all: log level, or nobody followed it
	Cut       Reason = "cut"        // its record ends or begins about then
	Down      Reason = "down"       // it did not run
	Fault     Reason = "fault"      // a fault kept the operation from getting there
	Refused   Reason = "refused"    // the plugin answered without asking its KMS
	Missing   Reason = "missing"    // nothing explains it
)

// unexplained is 1 if no circumstances account for the gap, else 0.
func (g Gap) unexplained() int {
	return map[Reason]int{Missing: 1, NoUID: 1, UIDReused: 1}[g.Reason]
}
