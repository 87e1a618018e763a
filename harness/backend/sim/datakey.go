package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
)

var errNoKey = errors.New("got unexpected nil transformer")

// rotate makes the provider's key one of the KEK that Status named: it extends the one that it has, or makes a new one. If that
// fails, the old one goes on until it expires.
func (p *provider) rotate(named string, done func(error)) {
	expires, legacy := p.now().Add(p.times().keyLifetime), p.e.s.w.legacyKeys // from before the call
	if p.key != nil && p.key.kekID == named && p.key.legacy == legacy {
		p.key.expires = expires
		done(nil)
		return
	}
	uid := p.e.s.w.uid()
	p.seal(uid, func(sealed *kmsapi.EncryptResponse, err error) {
		if err == nil && sealed.KeyId == named {
			p.key = &dataKey{uid: uid, kekID: sealed.KeyId, legacy: legacy, sealed: sealed.Ciphertext, expires: expires}
			done(nil)
			return
		}
		done(p.notRotated(uid, named, sealed, err))
	})
}

// notRotated says why there is no new key, in the API server's words.
func (p *provider) notRotated(uid, named string, sealed *kmsapi.EncryptResponse, err error) error {
	var state error = errNoKey
	kek, encrypted, expires := "", "", time.Time{}
	if p.key != nil {
		state, kek, expires = nil, p.key.kekID, p.key.expires
	}
	if err == nil {
		encrypted = sealed.KeyId
	}
	return fmt.Errorf("failed to rotate DEK uid=%q, useSeed=%v, errState=%v, errGen=%v, statusKeyIDHash=%q, encryptKeyIDHash=%q, stateKeyIDHash=%q, expirationTimestamp=%s",
		uid, !p.e.s.w.legacyKeys, state, err, hashOf(named), hashOf(encrypted), hashOf(kek), expires.Format(time.RFC3339))
}

// seal lets the plugin encrypt a new key.
func (p *provider) seal(uid string, done func(*kmsapi.EncryptResponse, error)) {
	w, plain := p.e.s.w, make([]byte, 32)
	_, _ = bytesOf{w.k.Rand()}.Read(plain)
	w.secrecy.Add("the key of "+p.name()+" on "+p.e.s.node.name, secrecy.Plain, plain)
	p.writeConfig("encrypt", uid, asked{})
	p.call(fault.Encrypt, &kmsapi.EncryptRequest{Plaintext: plain, Uid: uid}, func(resp any, err error) {
		if err != nil {
			done(nil, fmt.Errorf("failed to encrypt DEK, error: %w", err))
			return
		}
		sealed, ok := resp.(*kmsapi.EncryptResponse)
		if !ok {
			sealed = &kmsapi.EncryptResponse{} // a message without content
		}
		if err := checkSealed(sealed); err != nil {
			done(nil, err)
			return
		}
		w.secrecy.Add("the key of "+p.name()+" on "+p.e.s.node.name, secrecy.Sealed, sealed.Ciphertext)
		done(sealed, nil)
	})
}

// asked is the request for an object that an envelope operation is for; zero where it is for none.
type asked struct{ verb, name string }

// writeConfig is the line of the log that names an operation's uid.
func (p *provider) writeConfig(op, uid string, by asked) {
	n := p.e.s.node.name
	line := &history.Envelope{Hop: "kube-apiserver", Op: op, UID: uid, Node: n, OK: true}
	if by.name != "" {
		line.Object, line.For = p.e.s.w.encrypts.key(by.name), p.e.s.w.encrypts.request(by)
	}
	p.e.s.w.record("log/"+n, line)
}

// usable is the provider's key for writes.
func (p *provider) usable() (*dataKey, error) {
	if p.key == nil {
		return nil, errNoKey
	}
	if now := p.now(); now.After(p.key.expires) {
		return nil, fmt.Errorf("encryptedDEKSource with keyID hash %q expired at %s (current time is %s)",
			hashOf(p.key.kekID), p.key.expires.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	p.opened[p.key.uid] = p.clock().Add(p.times().opened)
	return p.key, nil
}

// open makes sure that the key of an object is in memory. A key that is goes on without the plugin; nothing can be read before the
// provider has had a key of its own.
func (p *provider) open(s *secret, by asked, done func(error)) {
	switch {
	case p.key == nil:
		done(errNoKey)
		return
	case p.clock().Before(p.opened[s.uid]) && !p.e.s.w.hooks.UnsealEachTime:
		done(nil)
		return
	}
	uid := p.e.s.w.uid()
	p.writeConfig("decrypt", uid, by)
	p.call(fault.Decrypt, &kmsapi.DecryptRequest{Ciphertext: s.sealed, Uid: uid, KeyId: s.kekID}, func(_ any, err error) {
		if err != nil {
			done(fmt.Errorf("failed to decrypt DEK, error: %w", err))
			return
		}
		p.opened[s.uid] = p.clock().Add(p.times().opened)
		done(nil)
	})
}

// hashOf is how logs and errors name a key_id.
func hashOf(keyID string) string {
	if keyID == "" {
		return ""
	}
	return digest([]byte(keyID))
}

func checkKeyID(keyID string) error {
	if keyID == "" {
		return errors.New("keyID is empty")
	}
	if len(keyID) > maxKeyIDBytes {
		return fmt.Errorf("keyID is %d bytes, which exceeds the max size of %d", len(keyID), maxKeyIDBytes)
	}
	return nil
}

// checkSealed is what an API server demands of what Encrypt answers.
func checkSealed(r *kmsapi.EncryptResponse) error {
	switch n := len(r.Ciphertext); {
	case n == 0:
		return errors.New("failed to validate encrypted DEK source: encrypted DEK source is empty")
	case n > maxDEKSourceBytes:
		return fmt.Errorf("failed to validate encrypted DEK source: encrypted DEK source is %d bytes, which exceeds the max size of %d", n, maxDEKSourceBytes)
	}
	if err := checkKeyID(r.KeyId); err != nil {
		return fmt.Errorf("failed to validate key id: %w", err)
	}
	return checkAnnotations(r.Annotations)
}

func checkAnnotations(annotations map[string][]byte) error {
	size, names := 0, make([]string, 0, len(annotations))
	for name, value := range annotations {
		size += len(name) + len(value)
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if errs := validation.IsFullyQualifiedDomainName(field.NewPath("annotations"), name); len(errs) > 0 {
			return fmt.Errorf("failed to validate annotations: %w", errs.ToAggregate())
		}
	}
	if size > maxAnnotationBytes {
		return fmt.Errorf("failed to validate annotations: total size of annotations is %d, which exceeds the max size of %d", size, maxAnnotationBytes)
	}
	return nil
}
