package keyring

import (
	"fmt"
	"slices"
	"time"
)

type Operation string

const (
	Encrypt Operation = "encrypt"
	Decrypt Operation = "decrypt"
)

// State of a KEK. Every state can be left again: deleted is the pending deletion of real services, and the key
// material is kept.
type State string

const (
	Enabled  State = "enabled"
	Disabled State = "disabled"
	Deleted  State = "deleted"
)

// KEK is what may be known of a key-encryption key: everything but the key.
type KEK struct {
	ID      string      `json:"id"`      // public; goes out as key_id, so it says nothing of the key
	Version int         `json:"version"` // 1, 2, 3 … within its ring
	Created time.Time   `json:"created"`
	State   State       `json:"state"`
	Denied  []Operation `json:"denied,omitempty"`
}

// Why a KEK was not used.
const (
	CodeUnknown    = "unknown-kek"
	CodeDisabled   = "disabled"
	CodeDeleted    = "deleted"
	CodeDenied     = "denied"
	CodeCiphertext = "bad-ciphertext"
	CodeInvalid    = "invalid"
)

// Refusal is an error with a stable code.
type Refusal struct {
	Code    string
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Refuse is a Refusal.
func Refuse(code, format string, args ...any) error {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Usable says why k may not be used for op; nil if it may.
func (k KEK) Usable(op Operation) error {
	switch k.State {
	case Disabled:
		return Refuse(CodeDisabled, "KEK %s (version %d) is disabled", k.ID, k.Version)
	case Deleted:
		return Refuse(CodeDeleted, "KEK %s (version %d) is deleted", k.ID, k.Version)
	}
	if slices.Contains(k.Denied, op) {
		return Refuse(CodeDenied, "access denied: no permission to %s with KEK %s (version %d)", op, k.ID, k.Version)
	}
	return nil
}

func validState(s State, denied []Operation) error {
	if s != Enabled && s != Disabled && s != Deleted {
		return Refuse(CodeInvalid, "state %q: expected enabled, disabled or deleted", s)
	}
	for _, op := range denied {
		if op != Encrypt && op != Decrypt {
			return Refuse(CodeInvalid, "denied operation %q: expected encrypt or decrypt", op)
		}
	}
	return nil
}
