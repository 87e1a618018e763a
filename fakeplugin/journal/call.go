package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"
)

// Outcome is how a call ended, as its caller sees it.
type Outcome string

const (
	Answered  Outcome = "answered"  // a response was sent; whether it was a good one is in its fields
	Failed    Outcome = "failed"    // a gRPC status other than OK was sent, or what the caller's library turns into one
	Nil       Outcome = "nil"       // an empty response was sent
	Abandoned Outcome = "abandoned" // the caller's deadline passed, or it went away, before there was an answer
	Reset     Outcome = "reset"     // the plugin broke the connection
	Crashed   Outcome = "crashed"   // the plugin died in the call
)

// MaxText bounds a text in the journal, in bytes: a key_id of legal size is kept whole, a hostile one is cut.
const MaxText = 1024

// Call is one call of the plugin, as it was answered. A probe whose time lies within Began..Ended, give or take the
// transport, is this call.
type Call struct {
	Seq       uint64    `json:"seq"`
	Node      string    `json:"node"`
	KeyID     string    `json:"keyID"` // of this instance: the number in its socket's name
	Method    string    `json:"method"`
	UID       string    `json:"uid,omitempty"`
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	LatencyMS float64   `json:"latencyMS"`
	Outcome   Outcome   `json:"outcome"`
	Code      string    `json:"code"` // gRPC status code that the caller sees, by name
	Detail    string    `json:"detail,omitempty"`
	// What a response said. Texts are cut to MaxText bytes; the sizes are those before the cut.
	Version      string `json:"version,omitempty"`
	Healthz      string `json:"healthz,omitempty"`
	HealthzBytes int    `json:"healthzBytes,omitempty"`
	KEKID        string `json:"kekID,omitempty"` // key_id in the response of Status or Encrypt
	KEKIDBytes   int    `json:"kekIDBytes,omitempty"`
	// Unreadable: the response held bytes that protobuf forbids; the caller's library turns it into an error.
	Unreadable bool `json:"unreadable,omitempty"`
	// NoticedKEKID is the KEK that this instance would honestly have named, RequestKEKID the key_id of a Decrypt.
	NoticedKEKID string `json:"noticedKEKID,omitempty"`
	RequestKEKID string `json:"requestKEKID,omitempty"`
	// DEKSource is the digest of the ciphertext that Encrypt answered or Decrypt was given: what is stored beside every object
	// under that key. It tells them apart and gives nothing away.
	DEKSource string   `json:"dekSource,omitempty"`
	Faults    []string `json:"faults,omitempty"` // names of the faults that shaped this call
}

// WithSeq implements Entry.
func (c Call) WithSeq(seq uint64) Call { c.Seq = seq; return c }

// Text is s as the journal keeps it: at most MaxText bytes, never cut within a character.
func Text(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText
	for end > MaxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end]) // or the journal would keep the whole hostile text alive
}

// Digest of a ciphertext, as the journal names it; "" of none.
func Digest(ciphertext []byte) string {
	if len(ciphertext) == 0 {
		return ""
	}
	sum := sha256.Sum256(ciphertext)
	return "sha256:" + hex.EncodeToString(sum[:])
}
