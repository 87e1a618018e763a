package remotekms

import (
	"errors"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
)

// ErrUnreachable is wrapped by every error that means that the KMS gave no answer.
var ErrUnreachable = errors.New("remote KMS unreachable")

// CodeNoKey is the refusal for a key that does not exist; the other codes are the keyring's.
const CodeNoKey = "unknown-key"

// Code is the stable code of a refusal, "" for any other error.
func Code(err error) string {
	var refusal *keyring.Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}
