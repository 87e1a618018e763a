package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// secret is an encrypted object as it lies in etcd.
type secret struct {
	revision int64
	value    []byte
	provider string
	local    encryption.Type // aescbc, aesgcm; identity in clear text
	keyID    string          // of the plugin, where one has encrypted it
	uid      string          // of the Encrypt that sealed its key
	kekID    string
	legacy   bool
	sealed   []byte // its key
	sum      string // of the value, once somebody has asked
}

// digest of its value. It is read many times, and never changes.
func (s *secret) digest() string {
	if s.sum == "" {
		s.sum = digest(s.value)
	}
	return s.sum
}

func digest(value []byte) string {
	sum := sha256.Sum256(value)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// store creates a secret, or replaces one, through an API server.
func (s *server) store(name string, value []byte, done func(error)) {
	s.work(done, func() {
		_, err := s.put(verbCreate, name, value)
		done(err)
	})
}

// update writes a secret. One that has this value already is left alone, and keeps its revision, unless it should be encrypted
// otherwise by now.
func (s *server) update(name string, value []byte, done func(revision int64, err error)) {
	s.work(func(err error) { done(0, err) }, func() {
		s.read(name, func(stored *secret, err error) {
			switch {
			case err != nil:
				done(0, err)
			case bytes.Equal(stored.value, value) && !s.envelope.stale(stored):
				done(stored.revision, nil)
			default:
				done(s.put(verbUpdate, name, value))
			}
		})
	})
}

func (s *server) put(verb, name string, value []byte) (revision int64, err error) {
	sealed, err := s.envelope.seal(value, asked{verb, name})
	if err != nil {
		return 0, apierrors.NewInternalError(err)
	}
	s.w.secretRevision++
	sealed.revision = s.w.secretRevision
	s.w.secrets[name] = sealed
	return sealed.revision, nil
}

// work is what every request costs; failed is told of what keeps it from being done.
func (s *server) work(failed func(error), then func()) {
	if !s.runs() {
		failed(errRefused)
		return
	}
	s.after(s.w.k.Between(leastServe, mostServe), func() {
		s.w.etcd.access(s, requestTimeout, func(ok bool) {
			if !ok {
				failed(errTimeout)
				return
			}
			then()
		})
	})
}

// seal is a value as the configuration in force has it written.
func (e *envelope) seal(value []byte, by asked) (*secret, error) {
	if e.loaded == nil {
		return nil, errNoKey
	}
	writer := e.loaded.config.Writer()
	out := &secret{value: value, provider: writer.Name()}
	if writer.Type != encryption.KMS {
		out.local = writer.Type
		return out, nil
	}
	p := e.loaded.provider(writer.KeyID)
	if p == nil { // it is being made
		return nil, errNoKey
	}
	k, err := p.usable()
	if err != nil {
		return nil, err
	}
	p.writeConfig("use", k.uid, by)
	out.keyID, out.uid, out.kekID, out.legacy, out.sealed = p.keyID, k.uid, k.kekID, k.legacy, k.sealed
	return out, nil
}

// stale says whether an object that was read would be written with another key, or by another provider.
func (e *envelope) stale(s *secret) bool {
	if s.provider != e.loaded.config.Writer().Name() {
		return true
	}
	if s.keyID == "" {
		return false
	}
	p := e.loaded.provider(s.keyID)
	return p != nil && p.key != nil && (p.key.kekID != s.kekID || p.key.legacy != s.legacy)
}

// load reads a secret through an API server.
func (s *server) load(name string, done func(read *secret, err error)) {
	s.work(func(err error) { done(nil, err) }, func() { s.read(name, done) })
}

func (s *server) read(name string, done func(*secret, error)) {
	stored := s.w.secrets[name]
	if s.envelope.loaded == nil { // it has just started
		done(nil, errNoKey)
		return
	}
	if stored == nil {
		done(nil, fmt.Errorf("%s %q not found", s.w.encrypts.name, name))
		return
	}
	s.envelope.open(stored, asked{verbGet, name}, func(err error) {
		if err != nil {
			err = corrupt(s.w.encrypts.objectName(name), err)
		}
		done(stored, err)
	})
}

// open makes an object readable: in clear text it is, and otherwise the provider of its prefix has to have its key. Where there
// are other keys of the same cipher, they are tried.
func (e *envelope) open(s *secret, by asked, done func(error)) {
	switch p := e.loaded.provider(s.keyID); {
	case s.provider == encryption.Clear().Name() || s.keyID == "" && slices.Contains(e.loaded.names(), s.provider):
		done(nil)
	case s.keyID == "" && len(e.loaded.config.KeyIDs(s.local)) > 0:
		done(errors.New("no matching key was found for the provided AES transformer"))
	case s.keyID == "" || p == nil:
		done(errors.New("no matching prefix found"))
	default:
		p.open(s, by, done)
	}
}

// corrupt is how an API server calls what it cannot decrypt.
func corrupt(object string, err error) error {
	return apierrors.NewInternalError(fmt.Errorf("StorageError: corrupt object, Code: 7, Key: /%s, ResourceVersion: 0, AdditionalErrorMsg: "+
		"data from the storage is not transformable revision=0: %w", object, err))
}

// keyPrefix begins the names of the secrets with keys of API servers. Those of further ones are kube-apiserver's to store as well.
const keyPrefix = "encryption-key-"

func namespaceOf(name string) string {
	switch {
	case strings.HasPrefix(name, keyPrefix) || strings.HasPrefix(name, configPrefix):
		return revision.Namespace
	case name == operated.CredentialSecret:
		return exchange.Credentials
	}
	return dataNamespace
}
