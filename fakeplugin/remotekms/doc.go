// Package remotekms models the key management service that the plugins of all nodes share: named keys with versions of
// KEKs, rotation, KEKs that are disabled, deleted or denied, leases of callers that log in, and callers that are disconnected or delayed. It has the
// model, a server with a socket of its own, and a client; the model can also run inside a plugin's process.
//
// It is independent of the KMS v2 API, which package plugin implements.
package remotekms

import (
	"context"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
)

// Service is what a plugin needs of the remote KMS.
type Service interface {
	// Describe says which KEK is current, and creates the key with a first KEK if it does not exist yet. Its error
	// is about reaching the KMS; whether the KEK may be used is in its state.
	Describe(ctx context.Context, caller Caller, key string) (Key, error)
	Encrypt(ctx context.Context, caller Caller, key string, kek keyring.Ref, plaintext []byte) (Sealed, error)
	Decrypt(ctx context.Context, caller Caller, key string, ciphertext []byte) ([]byte, error)
	// Lease logs a caller in, or renews the lease that it has. The refusal has CodeLease, or a code that begins with CodeLogIn.
	Lease(ctx context.Context, caller Caller, terms Terms) (Lease, error)
	// Rotate makes a new KEK current, or with reuse > 0 that old version under its old id, which no KMS should do.
	Rotate(ctx context.Context, key string, reuse int) (keyring.KEK, error)
}

// Caller is who asks, for access rules and for following one operation through all journals.
type Caller struct {
	Plugin string `json:"plugin"`        // NODE/KEYID
	UID    string `json:"uid,omitempty"` // of the KMS v2 request
	// Lease is that of its log-in; empty: it needs none.
	Lease string `json:"lease,omitempty"`
	// Certificate is what it logs in with; zero: with its first credential.
	Certificate Certificate `json:"certificate,omitzero"`
}

// Key is a remote key as its administrator sees it.
type Key struct {
	Name    string        `json:"name"`
	Current keyring.KEK   `json:"current"`
	KEKs    []keyring.KEK `json:"keks"` // oldest first, the current one among them
	// Denied is why the caller may not encrypt and decrypt; empty: it may.
	Denied string `json:"denied,omitempty"`
}

type Sealed struct {
	Ciphertext []byte      `json:"ciphertext"`
	KEK        keyring.KEK `json:"kek"`
}
