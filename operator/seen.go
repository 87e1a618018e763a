package operator

import (
	"bytes"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Seen is what was observed, with what it takes to act upon it.
type Seen struct {
	core.Observed
	secrets  map[uint64]*corev1.Secret // of keys
	material map[uint64][]byte
	files    map[int][]byte // of encryption configurations
}

// NewSeen is of an operator that has seen nothing yet.
func NewSeen() Seen {
	return Seen{secrets: map[uint64]*corev1.Secret{}, material: map[uint64][]byte{}, files: map[int][]byte{}}
}

// ErrUnreadable is for a key or a revision that is not as an operator writes it. Guessing would lose data, so it stops the operator.
var ErrUnreadable = errors.New("nothing is done until it can be read again")

// Kept adds a key or a revision that was read to what was seen. It can do so many times.
type Kept func(*Seen)

// ReadSecret reads a key or a revision of the encryption configuration; of others there is nothing to add.
func ReadSecret(one *corev1.Secret) (Kept, error) {
	switch kind := one.Labels[revision.KindLabel]; kind {
	case revision.KindKey:
		k, material, err := revision.ReadKey(one)
		return func(s *Seen) { s.Keys, s.secrets[k.ID], s.material[k.ID] = append(s.Keys, k), one, material }, unreadable(err)
	case revision.KindConfig:
		c, file, err := revision.ReadConfig(one)
		return func(s *Seen) { s.Configs, s.files[c.Revision] = append(s.Configs, c), file }, unreadable(err)
	}
	return func(*Seen) {}, nil
}

// ReadConfigMap reads a revision of the plugin configuration.
func ReadConfigMap(one *corev1.ConfigMap) (Kept, error) {
	p, err := revision.ReadPluginConfig(one)
	return func(s *Seen) { s.PluginConfigs = append(s.PluginConfigs, p) }, unreadable(err)
}

func unreadable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", err, ErrUnreadable)
}

// Add adds an object that could be read.
func (s *Seen) Add(add Kept, err error) error {
	if err == nil {
		add(s)
	}
	return err
}

// known is an error if there is a key of a type that the operator's release does not know. Such a key, which a newer release has made, must not
// be taken for one that is not there: what lies under it would be lost.
func (s Seen) known(o config.Options) error {
	for _, k := range s.Keys {
		if !o.Knows(k.Type) {
			return fmt.Errorf("key %d is of type %s, which this release of the operator does not know: install the newer release again: %w", k.ID, k.Type, ErrUnreadable)
		}
	}
	return nil
}

// File is the encryption configuration of a revision; ErrBehind if that was not seen.
func (s Seen) File(revision int) ([]byte, error) {
	file, there := s.files[revision]
	if !there {
		return nil, ErrBehind
	}
	return file, nil
}

// revisionOf is the newest revision with a file; 0: there is none.
func (s Seen) revisionOf(file []byte) (newest int) {
	for number, is := range s.files {
		if bytes.Equal(is, file) {
			newest = max(newest, number)
		}
	}
	return newest
}
