package keyring

import (
	"fmt"
	"io"
)

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
