package keyring

import (
	"fmt"
	"io"
)

// Ref names a KEK: by version, or by id if the version is 0.
type Ref struct {
	Version int    `json:"version,omitempty"`
	ID      string `json:"id,omitempty"`
}

// Overhead is by how many bytes a ciphertext is longer than its plaintext: a nonce of 12 and a tag of 16.
const Overhead = 12 + 16

// Seal encrypts under the KEK that ref names, which need not be the current one: a plugin that has not yet noticed a
// rotation goes on with the KEK that it knows. The KEK's id is authenticated with the plaintext.
func (r *Ring) Seal(ref Ref, plaintext []byte) ([]byte, KEK, error) {
	k, err := r.find(ref, Encrypt)
	if err != nil {
		return nil, KEK{}, err
	}
	out := make([]byte, k.aead.NonceSize(), len(plaintext)+Overhead)
	if err := r.nonce(out); err != nil {
		return nil, KEK{}, err
	}
	return k.aead.Seal(out, out, plaintext, []byte(k.ID)), k.KEK, nil
}

// Open decrypts what Seal made under the KEK that ref names.
func (r *Ring) Open(ref Ref, ciphertext []byte) ([]byte, KEK, error) {
	k, err := r.find(ref, Decrypt)
	if err != nil {
		return nil, KEK{}, err
	}
	n := k.aead.NonceSize()
	if len(ciphertext) < Overhead {
		return nil, k.KEK, refuse(CodeCiphertext, "the ciphertext has %d bytes, at least %d are needed", len(ciphertext), Overhead)
	}
	plaintext, err := k.aead.Open(nil, ciphertext[:n], ciphertext[n:], []byte(k.ID))
	if err != nil {
		return nil, k.KEK, refuse(CodeCiphertext, "the ciphertext was not made under KEK %s (version %d), or was changed", k.ID, k.Version)
	}
	return plaintext, k.KEK, nil
}

// find is a copy, so that the encryption itself needs no lock.
func (r *Ring) find(ref Ref, op Operation) (kek, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k, err := r.lookup(ref)
	if err != nil {
		return kek{}, err
	}
	return *k, k.Usable(op)
}

func (r *Ring) lookup(ref Ref) (*kek, error) {
	if ref.Version != 0 {
		return r.byVersion(ref.Version)
	}
	if version, ok := r.ids[ref.ID]; ok {
		return r.byVersion(version)
	}
	return nil, refuse(CodeUnknown, "there is no KEK %.64q", ref.ID)
}

func (r *Ring) nonce(b []byte) error {
	if _, err := io.ReadFull(r.rand, b); err != nil {
		return fmt.Errorf("read a nonce: %w", err)
	}
	return nil
}
