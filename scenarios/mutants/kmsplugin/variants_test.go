package kmsplugin

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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

// served are the variants as the program of the test serves them.
func served() (all []Mutant) {
	for _, v := range Variants() {
		all = append(all, Mutant{Name: v.Name, Change: v.Change})
	}
	return all
}

// eachCall runs f before each Encrypt and Decrypt, with the uid of the request.
func (r *Reference) eachCall(f func(uid string) error) {
	r.Encrypt.before(func(_ context.Context, q *kmsapi.EncryptRequest) error { return f(q.Uid) })
	r.Decrypt.before(func(_ context.Context, q *kmsapi.DecryptRequest) error { return f(q.Uid) })
}

func slowToken(r *Reference) {
	var token sync.Mutex
	r.eachCall(func(string) error {
		token.Lock()
		defer token.Unlock()
		waitFor(context.Background(), 20*time.Millisecond)
		return nil
	})
}

// syntheticNonce is derived from key and plaintext, so that no two plaintexts share one.
func syntheticNonce(plaintext, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(plaintext)
	return h.Sum(nil)[:nonceBytes]
}

func noAnnotations(r *Reference) {
	r.Encrypt.after(func(_ context.Context, _ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
		resp.Annotations = nil
	})
	r.Decrypt.before(func(_ context.Context, q *kmsapi.DecryptRequest) error {
		q.Annotations = map[string][]byte{annotation: []byte("1")}
		return nil
	})
}

func base64Ciphertext(r *Reference) {
	const prefix = "vault:v1:"
	r.Encrypt.after(func(_ context.Context, _ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
		resp.Ciphertext = []byte(prefix + base64.StdEncoding.EncodeToString(resp.Ciphertext))
	})
	r.Decrypt.before(func(_ context.Context, q *kmsapi.DecryptRequest) (err error) {
		text, ok := strings.CutPrefix(string(q.Ciphertext), prefix)
		if !ok {
			return refuse("invalid ciphertext: no prefix")
		}
		if q.Ciphertext, err = base64.StdEncoding.DecodeString(text); err != nil {
			return refuse("invalid ciphertext: no base64")
		}
		return nil
	})
}

// localKey encrypts the plaintext with a local key, and the local key with the KEK.
func localKey(r *Reference) {
	const local = "local-kek.reference.example.com"
	r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
		key := random(keyBytes)
		resp, err := next(ctx, &kmsapi.EncryptRequest{Uid: q.Uid, Plaintext: key})
		if err != nil {
			return nil, err
		}
		resp.Annotations[local], resp.Ciphertext = resp.Ciphertext, seal(key, q.Plaintext, nil)
		return resp, nil
	})
	r.Decrypt.around(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptMethod) (*kmsapi.DecryptResponse, error) {
		outer := q.Ciphertext
		q.Ciphertext = q.Annotations[local]
		resp, err := next(ctx, q)
		if err != nil {
			return nil, err
		}
		if len(resp.Plaintext) != keyBytes {
			return nil, refuse("the local key is too short")
		}
		resp.Plaintext, err = open(resp.Plaintext, outer, nil)
		return resp, err
	})
}

func refusing(refused func(*kmsapi.EncryptRequest) bool) func(*Reference) {
	return func(r *Reference) { r.Encrypt.refuse(refuse("plaintexts of this length are not encrypted"), refused) }
}

func uidRequired(r *Reference) {
	r.eachCall(func(uid string) error {
		if uid == "" {
			return refuse("uid is required")
		}
		return nil
	})
}

func uidOnce(r *Reference) {
	var seen memory[bool]
	r.eachCall(func(uid string) error {
		if _, ok := seen.get([]byte(uid)); ok && uid != "" {
			return status.Error(codes.AlreadyExists, "a request had this uid")
		}
		seen.set([]byte(uid), true)
		return nil
	})
}

func limitsReached(r *Reference) {
	const name = "padding.reference.example.com"
	long := func(id string) string { return id + strings.Repeat("0", 1024-len(id)) }
	together(renameKeyID(long), ciphertextPadded(1024))(r)
	r.Encrypt.after(func(_ context.Context, _ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
		used := len(annotation) + len(resp.Annotations[annotation]) + len(name)
		resp.Annotations[name] = make([]byte, 32<<10-used)
	})
}

func allUnavailable(r *Reference) {
	unavailable(&r.Encrypt)
	unavailable(&r.Decrypt)
}

// unavailable gives each error of a method the code Unavailable.
func unavailable[Q, R any](m *method[Q, R]) {
	m.around(func(ctx context.Context, q *Q, next method[Q, R]) (*R, error) {
		resp, err := next(ctx, q)
		if err != nil {
			return nil, status.Error(codes.Unavailable, "the request failed")
		}
		return resp, nil
	})
}
