package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

const (
	secretBytes = 32 // AES-256
	idBytes     = 6  // 48 random bits: short enough to read aloud, and looked up before it is given out
)

// MaxKEKs bounds the versions of one ring: a rotation every minute for a week.
const MaxKEKs = 10_000

// Ring is the history of one remote key: its KEKs by version, one of which is current. It is safe for concurrent use.
type Ring struct {
	mu      sync.RWMutex
	rand    io.Reader
	keks    []kek          // version v at v-1
	list    []KEK          // what List answers; nil after a change
	ids     map[string]int // id to version
	current int            // version; 0 before the first rotation
}

type kek struct {
	KEK
	secret []byte
	aead   cipher.AEAD
}

// New is an empty ring; rand is the source of keys, ids and nonces.
func New(rand io.Reader) *Ring { return &Ring{rand: rand, ids: map[string]int{}} }

// Rotate makes a new KEK with a new id and makes it current.
func (r *Ring) Rotate(now time.Time) (KEK, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.keks) >= MaxKEKs {
		return KEK{}, Refuse(CodeInvalid, "there are %d KEK versions already, no more are allowed", MaxKEKs)
	}
	secret, err := r.random(secretBytes)
	if err != nil {
		return KEK{}, err
	}
	id, err := r.freshID()
	if err != nil {
		return KEK{}, err
	}
	k := KEK{ID: id, Version: len(r.keks) + 1, Created: now.UTC(), State: Enabled}
	if err := r.add(k, secret); err != nil {
		return KEK{}, err
	}
	r.current = k.Version
	return k, nil
}

// Reuse makes an earlier version current again under its old id. A KMS must never do that (KMS v2: a key_id is
// never re-used, even when an old KEK returns); it is for the tests that want to see what happens then.
func (r *Ring) Reuse(version int) (KEK, error) {
	return r.change(version, func(*kek) { r.current = version })
}

// Current is the KEK that new ciphertexts should use; ok is false before the first rotation.
func (r *Ring) Current() (k KEK, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.current == 0 {
		return KEK{}, false
	}
	return r.keks[r.current-1].KEK, true
}

// List is every KEK, oldest first. It is not to be changed: all get the same one until a KEK changes.
func (r *Ring) List() []KEK {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list == nil {
		r.list = make([]KEK, len(r.keks))
		for i, k := range r.keks {
			r.list[i] = k.KEK
		}
	}
	return r.list
}

// SetState changes what a version may be used for.
func (r *Ring) SetState(version int, s State, denied []Operation) (KEK, error) {
	if err := validState(s, denied); err != nil {
		return KEK{}, err
	}
	return r.change(version, func(k *kek) { k.State, k.Denied = s, slices.Clone(denied) })
}

func (r *Ring) change(version int, do func(*kek)) (KEK, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, err := r.byVersion(version)
	if err != nil {
		return KEK{}, err
	}
	do(k)
	r.list = nil
	return k.KEK, nil
}

// add puts k at the end of the ring.
func (r *Ring) add(k KEK, secret []byte) error {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return fmt.Errorf("KEK version %d: %w", k.Version, err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return fmt.Errorf("KEK version %d: %w", k.Version, err)
	}
	r.keks = append(r.keks, kek{k, secret, aead})
	r.list = nil
	r.ids[k.ID] = k.Version
	return nil
}

func (r *Ring) byVersion(version int) (*kek, error) {
	if version < 1 || version > len(r.keks) {
		return nil, Refuse(CodeUnknown, "there is no KEK version %d (known: 1 to %d)", version, len(r.keks))
	}
	return &r.keks[version-1], nil
}

func (r *Ring) freshID() (string, error) {
	for {
		b, err := r.random(idBytes)
		if err != nil {
			return "", err
		}
		id := "kek-" + hex.EncodeToString(b)
		if _, taken := r.ids[id]; !taken {
			return id, nil
		}
	}
}

func (r *Ring) random(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(r.rand, b); err != nil {
		return nil, fmt.Errorf("read randomness: %w", err)
	}
	return b, nil
}

// Snapshot is a ring with its secrets, for the file from which a killed remote KMS goes on. The keys protect test
// data only.
type Snapshot struct {
	Current int         `json:"current"`
	KEKs    []SecretKEK `json:"keks"`
}

// SecretKEK is a KEK with its key.
type SecretKEK struct {
	KEK
	Secret []byte `json:"secret"`
}

func (r *Ring) Snapshot() Snapshot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s := Snapshot{Current: r.current, KEKs: make([]SecretKEK, len(r.keks))}
	for i, k := range r.keks {
		s.KEKs[i] = SecretKEK{k.KEK, k.secret}
	}
	return s
}

// Restore is the inverse of Snapshot.
func Restore(rand io.Reader, s Snapshot) (*Ring, error) {
	r := New(rand)
	for i, k := range s.KEKs {
		if k.Version != i+1 || k.ID == "" || len(k.Secret) != secretBytes {
			return nil, fmt.Errorf("restore KEK %d: expected version %d, an id and a secret of %d bytes", i, i+1, secretBytes)
		}
		if err := validState(k.State, k.Denied); err != nil {
			return nil, fmt.Errorf("restore KEK %d: %w", i, err)
		}
		if err := r.add(k.KEK, k.Secret); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
	}
	if s.Current < 0 || s.Current > len(s.KEKs) {
		return nil, fmt.Errorf("restore: the current version %d does not exist", s.Current)
	}
	r.current = s.Current
	return r, nil
}
