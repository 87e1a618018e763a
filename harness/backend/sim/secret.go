package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/history"
)

// secret is an encrypted object as it lies in etcd.
type secret struct {
	value    []byte
	provider string
	keyID    string // of the plugin; empty in clear text
	uid      string // of the Encrypt that sealed its key
	kekID    string
	sealed   []byte // its key
}

func digest(value []byte) string {
	sum := sha256.Sum256(value)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// store writes a secret through an API server.
func (s *server) store(name string, value []byte, done func(error)) {
	s.work(done, func() {
		sealed, err := s.envelope.seal(value)
		if err == nil {
			s.w.secrets[name] = sealed
		}
		done(err)
	})
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

func (e *envelope) seal(value []byte) (*secret, error) {
	out := &secret{value: value, provider: e.loaded.writer()}
	if e.loaded.identity {
		return out, nil
	}
	k, now := e.keys[e.loaded.keyIDs[0]], e.s.w.k.Now()
	switch {
	case k == nil || k.uid == "":
		return nil, apierrors.NewInternalError(errors.New("got unexpected nil transformer"))
	case now.After(k.expires):
		return nil, apierrors.NewInternalError(fmt.Errorf("encryptedDEKSource with keyID hash %q expired at %s (current time is %s)",
			digest([]byte(k.kekID)), k.expires.Format(time.RFC3339), now.Format(time.RFC3339)))
	}
	out.keyID, out.uid, out.kekID, out.sealed = k.keyID, k.uid, k.kekID, k.sealed
	return out, nil
}

// load reads a secret through an API server, which asks the plugin for a key that it does not have in memory.
func (s *server) load(name string, done func(value []byte, err error)) {
	s.work(func(err error) { done(nil, err) }, func() {
		stored, e := s.w.secrets[name], s.envelope
		switch {
		case stored == nil:
			done(nil, fmt.Errorf("secrets %q not found", name))
			return
		case stored.keyID == "" || e.opened[stored.uid]:
			done(stored.value, nil)
			return
		}
		uid := s.w.uid()
		s.w.record("log/"+s.node.name, &history.Envelope{Hop: "kube-apiserver", Op: "decrypt", UID: uid, Node: s.node.name,
			Object: "/registry/" + objectName(name), OK: true})
		req := &kmsapi.DecryptRequest{Ciphertext: stored.sealed, Uid: uid, KeyId: stored.kekID}
		s.node.plugin(stored.keyID).call(fault.Decrypt, req, kmsTimeout, func(r response) {
			s.bind(func() {
				if r.code != "OK" {
					done(nil, apierrors.NewInternalError(fmt.Errorf("failed to decrypt DEK, error: rpc error: code = %s desc = %s", r.code, r.text)))
					return
				}
				e.opened[stored.uid] = true
				done(stored.value, nil)
			})()
		})
	})
}

func objectName(name string) string { return "secrets/default/" + name }
