package kmsplugin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance/plugin"
)

// Variant is a correct plugin that keeps the rules in its own way. No check may fail on it.
type Variant struct {
	Name string
	// Shape is what differs from the reference, in one sentence.
	Shape  string
	Change func(*Reference)
	// Abstract makes it listen on an abstract socket.
	Abstract bool
}

func Variants() []Variant {
	return []Variant{
		{Name: "slow-token", Shape: "Each call takes 20 ms, one at a time.", Change: slowToken},
		{Name: "deterministic", Shape: "Equal plaintexts have equal ciphertexts.", Change: sealWith(syntheticNonce)},
		{Name: "no-annotations", Shape: "There are no annotations.", Change: noAnnotations},
		{Name: "constant-ciphertext", Shape: "An annotation has the ciphertext, and a constant is in its place.", Change: ciphertextInAnnotation([]byte("see annotations"))},
		{Name: "base64-ciphertext", Shape: "The ciphertext is text, as that of Vault.", Change: base64Ciphertext},
		{Name: "local-key", Shape: "Each plaintext has a local key, which an annotation has encrypted.", Change: localKey},
		{Name: "only-32-bytes", Shape: "Plaintexts of any other length are refused.", Change: refusing(func(q *kmsapi.EncryptRequest) bool { return len(q.Plaintext) != plugin.SeedBytes })},
		{Name: "no-empty-plaintext", Shape: "An empty plaintext is refused.", Change: refusing(func(q *kmsapi.EncryptRequest) bool { return len(q.Plaintext) == 0 })},
		{Name: "uid-required", Shape: "Requests without a uid are refused.", Change: uidRequired},
		{Name: "uid-once", Shape: "A uid that was seen before is refused.", Change: uidOnce},
		{Name: "key-id-ignored", Shape: "Decrypt tries all keys.", Change: anyKey},
		{Name: "limits-reached", Shape: "key_id and ciphertext have 1024 bytes, and the annotations 32 KiB.", Change: limitsReached},
		{Name: "unlimited", Shape: "Plaintexts of any length are encrypted.", Change: unlimited},
		{Name: "all-unavailable", Shape: "Each error has the code Unavailable.", Change: allUnavailable},
		{Name: "v2beta1", Shape: "The version is v2beta1.", Change: onStatus(func(_ int, resp *kmsapi.StatusResponse) { resp.Version = "v2beta1" })},
		{Name: "keys-in-memory", Shape: "It has the keys in memory, and works without its KMS.", Change: func(r *Reference) { r.KMS.cached = true }},
		{Name: "abstract-socket", Shape: "It listens on an abstract socket.", Abstract: true},
	}
}

// find returns the change of the mutant or of the variant with a name.
func find(name string) (Mutant, bool) {
	if m, ok := Find(name); ok {
		return m, true
	}
	all := Variants()
	i := slices.IndexFunc(all, func(v Variant) bool { return v.Name == name })
	if i < 0 {
		return Mutant{}, false
	}
	return Mutant{Name: name, Change: all[i].Change}, true
}

func slowToken(r *Reference) {
	var token sync.Mutex
	use := func() {
		token.Lock()
		defer token.Unlock()
		<-time.After(20 * time.Millisecond)
	}
	together(
		beforeEncrypt(func(*kmsapi.EncryptRequest) error { use(); return nil }),
		beforeDecrypt(func(*kmsapi.DecryptRequest) error { use(); return nil }),
	)(r)
}

// syntheticNonce is derived from key and plaintext, so that no two plaintexts share one.
func syntheticNonce(plaintext, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(plaintext)
	return h.Sum(nil)[:nonceBytes]
}

func noAnnotations(r *Reference) {
	together(
		onEncrypt(func(resp *kmsapi.EncryptResponse) { resp.Annotations = nil }),
		beforeDecrypt(func(q *kmsapi.DecryptRequest) error {
			q.Annotations = map[string][]byte{annotation: []byte("1")}
			return nil
		}),
	)(r)
}

func base64Ciphertext(r *Reference) {
	const prefix = "vault:v1:"
	together(
		onEncrypt(func(resp *kmsapi.EncryptResponse) {
			resp.Ciphertext = []byte(prefix + base64.StdEncoding.EncodeToString(resp.Ciphertext))
		}),
		beforeDecrypt(func(q *kmsapi.DecryptRequest) (err error) {
			text, ok := strings.CutPrefix(string(q.Ciphertext), prefix)
			if !ok {
				return refuse("invalid ciphertext: no prefix")
			}
			if q.Ciphertext, err = base64.StdEncoding.DecodeString(text); err != nil {
				return refuse("invalid ciphertext: no base64")
			}
			return nil
		}),
	)(r)
}

// localKey encrypts the plaintext with a local key, and the local key with the KEK.
func localKey(r *Reference) {
	const local = "local-kek.reference.example.com"
	together(
		aroundEncrypt(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptFunc) (*kmsapi.EncryptResponse, error) {
			key, nonce := make([]byte, keyBytes), make([]byte, nonceBytes)
			_, _ = rand.Read(key)
			_, _ = rand.Read(nonce)
			resp, err := next(ctx, &kmsapi.EncryptRequest{Uid: q.Uid, Plaintext: key})
			if err != nil {
				return nil, err
			}
			resp.Annotations[local], resp.Ciphertext = resp.Ciphertext, gcm(key).Seal(nonce, nonce, q.Plaintext, nil)
			return resp, nil
		}),
		aroundDecrypt(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptFunc) (*kmsapi.DecryptResponse, error) {
			outer := q.Ciphertext
			q.Ciphertext = q.Annotations[local]
			key, err := next(ctx, q)
			if err != nil {
				return nil, err
			}
			if len(outer) < nonceBytes || len(key.Plaintext) != keyBytes {
				return nil, refuse("the ciphertext is too short")
			}
			plaintext, err := gcm(key.Plaintext).Open(nil, outer[:nonceBytes], outer[nonceBytes:], nil)
			if err != nil {
				return nil, refuse("the ciphertext is not authentic")
			}
			return &kmsapi.DecryptResponse{Plaintext: plaintext}, nil
		}),
	)(r)
}

func refusing(refused func(*kmsapi.EncryptRequest) bool) func(*Reference) {
	return beforeEncrypt(func(q *kmsapi.EncryptRequest) error {
		if refused(q) {
			return refuse("plaintexts of this length are not encrypted")
		}
		return nil
	})
}

func uidRequired(r *Reference) {
	required := func(uid string) error {
		if uid == "" {
			return refuse("uid is required")
		}
		return nil
	}
	together(
		beforeEncrypt(func(q *kmsapi.EncryptRequest) error { return required(q.Uid) }),
		beforeDecrypt(func(q *kmsapi.DecryptRequest) error { return required(q.Uid) }),
	)(r)
}

func uidOnce(r *Reference) {
	var seen memory[bool]
	once := func(uid string) error {
		if _, ok := seen.get([]byte(uid)); ok && uid != "" {
			return status.Error(codes.AlreadyExists, "a request had this uid")
		}
		seen.set([]byte(uid), true)
		return nil
	}
	together(
		beforeEncrypt(func(q *kmsapi.EncryptRequest) error { return once(q.Uid) }),
		beforeDecrypt(func(q *kmsapi.DecryptRequest) error { return once(q.Uid) }),
	)(r)
}

func limitsReached(r *Reference) {
	const name = "padding.reference.example.com"
	long := func(id string) string { return id + strings.Repeat("0", 1024-len(id)) }
	together(
		renameKeyID(long), ciphertextPadded(1024),
		onEncrypt(func(resp *kmsapi.EncryptResponse) {
			used := len(annotation) + len(resp.Annotations[annotation]) + len(name)
			resp.Annotations[name] = make([]byte, 32<<10-used)
		}),
	)(r)
}

// unlimited makes Encrypt accept plaintexts of any length.
func unlimited(r *Reference) {
	aroundEncrypt(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptFunc) (*kmsapi.EncryptResponse, error) {
		plaintext := q.Plaintext
		q.Plaintext = nil
		resp, err := next(ctx, q)
		if err != nil {
			return nil, err
		}
		key, err := r.keyOf(resp.KeyId)
		if err != nil {
			return nil, err
		}
		nonce := make([]byte, nonceBytes)
		_, _ = rand.Read(nonce)
		resp.Ciphertext = gcm(key).Seal(nonce, nonce, plaintext, nil)
		return resp, nil
	})(r)
}

func allUnavailable(r *Reference) {
	together(
		aroundEncrypt(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptFunc) (*kmsapi.EncryptResponse, error) {
			resp, err := next(ctx, q)
			if err != nil {
				return nil, status.Error(codes.Unavailable, "the request failed")
			}
			return resp, nil
		}),
		aroundDecrypt(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptFunc) (*kmsapi.DecryptResponse, error) {
			resp, err := next(ctx, q)
			if err != nil {
				return nil, status.Error(codes.Unavailable, "the request failed")
			}
			return resp, nil
		}),
	)(r)
}
