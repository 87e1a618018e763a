package keyring

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Ref names a KEK: by version, or by id if the version is 0.
type Ref struct {
	Version int    `json:"version,omitempty"`
	ID      string `json:"id,omitempty"`
}

// A ciphertext is the KEK's version, a nonce, and what AES-GCM makes of the plaintext, its tag included. That the version is
// in it, as in the ciphertexts of real services, lets Open find the KEK whatever key_id a fault made of it.
const (
	versionBytes = 4
	nonceBytes   = 12
	tagBytes     = 16
	// Overhead is by how many bytes a ciphertext is longer than its plaintext.
	Overhead = versionBytes + nonceBytes + tagBytes
)

// Seal encrypts under the KEK that ref names, which need not be the current one: a plugin that has not yet noticed a
// rotation goes on with the KEK that it knows. The KEK's id is authenticated with the plaintext.
func (r *Ring) Seal(ref Ref, plaintext []byte) ([]byte, KEK, error) {
	k, err := r.find(ref, Encrypt)
	if err != nil {
		return nil, KEK{}, err
	}
	const head = versionBytes + nonceBytes
	out := make([]byte, head, len(plaintext)+Overhead)
	binary.BigEndian.PutUint32(out, uint32(k.Version)) // at most MaxKEKs
	if _, err := io.ReadFull(r.rand, out[versionBytes:]); err != nil {
		return nil, KEK{}, fmt.Errorf("read a nonce: %w", err)
	}
	return k.aead.Seal(out, out[versionBytes:], plaintext, []byte(k.ID)), k.KEK, nil
}

// Open decrypts what Seal made, under the KEK that the ciphertext names.
func (r *Ring) Open(ciphertext []byte) ([]byte, KEK, error) {
	if len(ciphertext) < Overhead {
		return nil, KEK{}, Refuse(CodeCiphertext, "the ciphertext has %d bytes, at least %d are needed", len(ciphertext), Overhead)
	}
	version := binary.BigEndian.Uint32(ciphertext)
	if version == 0 || version > MaxKEKs {
		return nil, KEK{}, Refuse(CodeCiphertext, "the ciphertext was not made by this KMS: it names KEK version %d", version)
	}
	k, err := r.find(Ref{Version: int(version)}, Decrypt)
	if err != nil {
		return nil, k.KEK, err
	}
	nonce, sealed := ciphertext[versionBytes:versionBytes+nonceBytes], ciphertext[versionBytes+nonceBytes:]
	plaintext, err := k.aead.Open(nil, nonce, sealed, []byte(k.ID))
	if err != nil {
		return nil, k.KEK, Refuse(CodeCiphertext, "the ciphertext was not made under KEK %s (version %d), or was changed", k.ID, k.Version)
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
	return nil, Refuse(CodeUnknown, "there is no KEK %.64q", ref.ID)
}
