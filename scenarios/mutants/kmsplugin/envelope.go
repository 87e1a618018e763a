package kmsplugin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance/plugin"
)

func envelopeMutants() []Mutant {
	return []Mutant{
		{Name: "encrypt-fails", Mistake: "Encrypt is an error.", Caught: "KMS2-ENCRYPT-ANSWERS",
			Also: []string{"KMS2-LIFECYCLE-STOPS", "KMS2-LIFECYCLE-RESTART-AFTER-SIGKILL"},
			Change: func(r *Reference) {
				r.Encrypt.refuse(refuse("access denied"), func(*kmsapi.EncryptRequest) bool { return true })
			}},
		{Name: "ciphertext-in-annotation", Mistake: "The ciphertext is empty, and an annotation has it.", Caught: "KMS2-ENCRYPT-CIPHERTEXT-PRESENT", Change: ciphertextInAnnotation(nil)},
		{Name: "ciphertext-padded", Mistake: "The ciphertext is padded to 1100 bytes.", Caught: "KMS2-ENCRYPT-CIPHERTEXT-SIZE", Change: ciphertextPadded(1100)},
		{Name: "encrypt-key-id-empty", Mistake: "Encrypt returns no key_id.", Caught: "KMS2-ENCRYPT-KEY-ID-PRESENT",
			Change: encryptKeyID(func(string) string { return "" })},
		{Name: "encrypt-key-id-long", Mistake: "Encrypt returns the key_id with 1 KiB of metadata.", Caught: "KMS2-ENCRYPT-KEY-ID-SIZE",
			Change: encryptKeyID(func(id string) string { return id + strings.Repeat("/metadata", 1024/9+1) })},
		{Name: "encrypt-key-id-local", Mistake: "Encrypt returns the id of a local key.", Caught: "KMS2-ENCRYPT-KEY-ID-EQUALS-STATUS",
			Change: encryptKeyID(func(id string) string { return "local-" + id })},
		{Name: "encrypt-key-id-flips", Mistake: "After ten Encrypts without a Status, Encrypt returns another key_id.", Caught: "KMS2-ENCRYPT-KEY-ID-STABLE", Change: encryptKeyIDFlips},
		{Name: "annotation-one-label", Mistake: "The key of an annotation has no dot.", Caught: "KMS2-ENCRYPT-ANNOTATION-KEYS",
			Change: afterEncrypt(func(_ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
				resp.Annotations["version"] = []byte("1")
			})},
		{Name: "annotations-large", Mistake: "An annotation has a certificate chain of 33 KiB.", Caught: "KMS2-ENCRYPT-ANNOTATION-SIZE",
			Change: afterEncrypt(func(_ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
				resp.Annotations["chain.example.com"] = make([]byte, 33<<10)
			})},
		{Name: "annotation-shows-plaintext", Mistake: "An annotation for debugging has the plaintext in base64.", Caught: "KMS2-ENCRYPT-ANNOTATIONS-HIDE",
			Change: afterEncrypt(func(q *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
				resp.Annotations["debug.example.com"] = []byte(base64.StdEncoding.EncodeToString(q.Plaintext))
			})},
		{Name: "decrypt-fails", Mistake: "Decrypt is an error.", Caught: "KMS2-ENCRYPT-ROUND-TRIP",
			Change: func(r *Reference) {
				r.Decrypt.refuse(refuse("access denied"), func(*kmsapi.DecryptRequest) bool { return true })
			}},
		{Name: "uid-bound", Mistake: "Decrypt demands the uid of Encrypt.", Caught: "KMS2-ENCRYPT-ROUND-TRIP", Change: uidBound},
		{Name: "zeros-trimmed", Mistake: "Decrypt removes four or more zeros from the end.", Caught: "KMS2-ENCRYPT-EDGE-BYTES", Change: zerosTrimmed},
		{Name: "cached-by-prefix", Mistake: "Encrypt caches its answers by the first 16 bytes.", Caught: "KMS2-ENCRYPT-DISTINCT",
			Change: cachedBy(func(q *kmsapi.EncryptRequest) string {
				if len(q.Plaintext) != plugin.SeedBytes {
					return ""
				}
				return string(q.Plaintext[:16])
			})},
		{Name: "ciphertext-shows-plaintext", Mistake: "The plaintext follows its ciphertext.", Caught: "KMS2-ENCRYPT-CIPHERTEXT-HIDES", Change: plaintextAppended},
		{Name: "nonce-constant", Mistake: "Encrypt always uses the same nonce.", Caught: "KMS2-ENCRYPT-CIPHERTEXT-KEYSTREAM",
			Change: sealWith(func(_, _ []byte) []byte { return make([]byte, nonceBytes) })},
		{Name: "cached-with-new-nonce", Mistake: "Encrypt caches the ciphertext of a plaintext, and puts a new nonce before it.", Caught: "KMS2-ENCRYPT-SAME-PLAINTEXT", Change: cachedWithNewNonce},
		{Name: "decrypt-once", Mistake: "Decrypt refuses a ciphertext that was decrypted before, as a replay.", Caught: "KMS2-DECRYPT-REPEATED", Change: decryptOnce},
		{Name: "decrypt-ascending", Mistake: "Decrypt refuses a ciphertext that is older than the last one, as a replay.", Caught: "KMS2-DECRYPT-ANY-ORDER", Change: decryptAscending},
		{Name: "key-of-connection", Mistake: "Each connection has a local key of its own.", Caught: "KMS2-DECRYPT-OTHER-CONNECTION", Change: keyOfConnection},
		{Name: "forgets-local-keys", Mistake: "The local key of a ciphertext is forgotten after 199 further ones.", Caught: "KMS2-DECRYPT-LATER", Change: forgetsLocalKeys},
		{Name: "status-renews-local-key", Mistake: "Status makes a new local key and forgets the old one.", Caught: "KMS2-DECRYPT-AFTER-STATUS", Change: statusRenewsKey},
		{Name: "cached-by-uid", Mistake: "Encrypt repeats its answer for a uid that it has seen.", Caught: "KMS2-ENCRYPT-UID-REUSED",
			Change: cachedBy((*kmsapi.EncryptRequest).GetUid)},
		{Name: "zeros-replaced", Mistake: "Encrypt takes 32 zeros for a missing key, and makes one.", Caught: "KMS2-ENCRYPT-UNIFORM-BYTES",
			Change: beforeEncrypt(func(q *kmsapi.EncryptRequest) {
				if bytes.Equal(q.Plaintext, make([]byte, plugin.SeedBytes)) {
					q.Plaintext = bytes.Repeat([]byte{7}, plugin.SeedBytes)
				}
			})},
		{Name: "base64-decoded", Mistake: "Encrypt decodes a plaintext that is valid base64.", Caught: "KMS2-ENCRYPT-TEXT-BYTES",
			Change: beforeEncrypt(func(q *kmsapi.EncryptRequest) {
				if b, err := base64.StdEncoding.DecodeString(string(q.Plaintext)); err == nil && len(b) > 0 {
					q.Plaintext = b
				}
			})},
		{Name: "empty-replaced", Mistake: "Encrypt makes a key if the plaintext is empty.", Caught: "KMS2-ENCRYPT-PLAINTEXT-EMPTY",
			Change: beforeEncrypt(func(q *kmsapi.EncryptRequest) {
				if len(q.Plaintext) == 0 {
					q.Plaintext = bytes.Repeat([]byte{7}, plugin.SeedBytes)
				}
			})},
		{Name: "padded-to-32", Mistake: "Encrypt pads to 32 bytes, and Decrypt does not remove it.", Caught: "KMS2-ENCRYPT-PLAINTEXT-SMALL",
			Change: beforeEncrypt(func(q *kmsapi.EncryptRequest) {
				if n := len(q.Plaintext); n > 0 && n < plugin.SeedBytes {
					q.Plaintext = append(q.Plaintext, make([]byte, plugin.SeedBytes-n)...)
				}
			})},
		{Name: "cut-to-32", Mistake: "Encrypt takes the first 32 bytes.", Caught: "KMS2-ENCRYPT-PLAINTEXT-LARGE", Change: cutTo(plugin.SeedBytes)},
		{Name: "cut-to-300", Mistake: "Encrypt takes the first 300 bytes, the size of its buffer.", Caught: "KMS2-ENCRYPT-PLAINTEXT-GROWING", Change: cutTo(300)},
	}
}

const ciphertextAnnotation = "ciphertext.reference.example.com"

// ciphertextInAnnotation keeps the ciphertext in an annotation, and a constant in its place.
func ciphertextInAnnotation(constant []byte) func(*Reference) {
	return func(r *Reference) {
		r.Encrypt.after(func(_ context.Context, _ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
			resp.Annotations[ciphertextAnnotation], resp.Ciphertext = resp.Ciphertext, constant
		})
		beforeDecrypt(func(q *kmsapi.DecryptRequest) { q.Ciphertext = q.Annotations[ciphertextAnnotation] })(r)
	}
}

// ciphertextPadded pads the ciphertext. Its last two bytes are its length before.
func ciphertextPadded(size int) func(*Reference) {
	return func(r *Reference) {
		r.Encrypt.after(func(_ context.Context, _ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
			n := len(resp.Ciphertext)
			resp.Ciphertext = append(resp.Ciphertext, make([]byte, max(0, size-2-n))...)
			resp.Ciphertext = append(resp.Ciphertext, byte(n>>8), byte(n))
		})
		r.Decrypt.before(func(_ context.Context, q *kmsapi.DecryptRequest) error {
			last := len(q.Ciphertext) - 2
			if last < 0 {
				return refuse("the ciphertext is too short")
			}
			if n := int(q.Ciphertext[last])<<8 + int(q.Ciphertext[last+1]); n <= last {
				q.Ciphertext = q.Ciphertext[:n]
			}
			return nil
		})
	}
}

// encryptKeyID changes the key_id of Encrypt. Decrypt tries all keys.
func encryptKeyID(f func(string) string) func(*Reference) {
	return together(anyKey, afterEncrypt(func(_ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) { resp.KeyId = f(resp.KeyId) }))
}

func encryptKeyIDFlips(r *Reference) {
	var encrypts atomic.Int64
	onStatus(func(int, *kmsapi.StatusResponse) { encrypts.Store(0) })(r)
	encryptKeyID(func(id string) string {
		if encrypts.Add(1) > 10 {
			return id + "-1"
		}
		return id
	})(r)
}

func uidBound(r *Reference) {
	noted(r, func(_ context.Context, q *kmsapi.EncryptRequest) string { return q.Uid }, func(_ context.Context, q *kmsapi.DecryptRequest, uid string) error {
		if uid != q.Uid {
			return refuse("the uid is not that of Encrypt")
		}
		return nil
	})
}

func zerosTrimmed(r *Reference) {
	r.Decrypt.after(func(_ context.Context, _ *kmsapi.DecryptRequest, resp *kmsapi.DecryptResponse) {
		if bytes.HasSuffix(resp.Plaintext, make([]byte, 4)) {
			resp.Plaintext = bytes.TrimRight(resp.Plaintext, "\x00")
		}
	})
}

// cachedBy makes Encrypt repeat its answer to requests with the same name; empty: none.
func cachedBy(name func(*kmsapi.EncryptRequest) string) func(*Reference) {
	return func(r *Reference) {
		var answers memory[*kmsapi.EncryptResponse]
		r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
			key := []byte(name(q))
			if resp, ok := answers.get(key); ok && len(key) > 0 {
				return resp, nil
			}
			resp, err := next(ctx, q)
			if err == nil {
				answers.set(key, resp)
			}
			return resp, err
		})
	}
}

func plaintextAppended(r *Reference) {
	r.Encrypt.after(func(_ context.Context, q *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
		resp.Ciphertext = append(resp.Ciphertext, q.Plaintext...)
	})
	r.Decrypt.before(func(_ context.Context, q *kmsapi.DecryptRequest) error {
		const overhead = nonceBytes + 16
		n := len(q.Ciphertext) - overhead
		if n < 0 || n%2 != 0 {
			return refuse("the ciphertext has an impossible length")
		}
		q.Ciphertext = q.Ciphertext[:overhead+n/2]
		return nil
	})
}

func cachedWithNewNonce(r *Reference) {
	var bodies memory[[]byte]
	r.Encrypt.after(func(_ context.Context, q *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
		if body, ok := bodies.get(q.Plaintext); ok {
			resp.Ciphertext = append(resp.Ciphertext[:nonceBytes:nonceBytes], body...)
			return
		}
		bodies.set(q.Plaintext, resp.Ciphertext[nonceBytes:])
	})
}

func decryptOnce(r *Reference) {
	var seen memory[bool]
	r.Decrypt.after(func(_ context.Context, q *kmsapi.DecryptRequest, _ *kmsapi.DecryptResponse) {
		seen.set(q.Ciphertext, true)
	})
	r.Decrypt.refuse(refuse("the ciphertext was decrypted before"), func(q *kmsapi.DecryptRequest) bool {
		_, before := seen.get(q.Ciphertext)
		return before
	})
}

// decryptAscending counts on from the time, so that the ciphertexts of a former run are older.
func decryptAscending(r *Reference) {
	var count, last atomic.Uint64
	count.Store(uint64(time.Now().UnixNano()))
	sealWith(func(_, _ []byte) []byte { return counted(count.Add(1)) })(r)
	r.Decrypt.around(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptMethod) (*kmsapi.DecryptResponse, error) {
		resp, err := next(ctx, q)
		if err != nil {
			return nil, err
		}
		for n := sequence(q.Ciphertext[:nonceBytes]); ; {
			before := last.Load()
			if n < before {
				return nil, refuse("the ciphertext is older than the last one")
			}
			if last.CompareAndSwap(before, n) {
				return resp, nil
			}
		}
	})
}

func keyOfConnection(r *Reference) {
	r.Options = append(r.Options, grpc.StatsHandler(&connNumber{}))
	noted(r, func(ctx context.Context, _ *kmsapi.EncryptRequest) any { return ctx.Value(connKey{}) }, func(ctx context.Context, _ *kmsapi.DecryptRequest, owner any) error {
		if owner != ctx.Value(connKey{}) {
			return refuse("the connection has no such key")
		}
		return nil
	})
}

func forgetsLocalKeys(r *Reference) {
	const kept = 199
	var count atomic.Int64
	r.localKeys(func() int64 { return count.Add(1) }, func(made int64) bool { return count.Load()-made > kept })
}

func statusRenewsKey(r *Reference) {
	var epoch atomic.Int64
	onStatus(func(int, *kmsapi.StatusResponse) { epoch.Add(1) })(r)
	r.localKeys(epoch.Load, func(made int64) bool { return made != epoch.Load() })
}

// localKeys numbers ciphertexts, and makes Decrypt refuse those whose local key is gone by its number.
func (r *Reference) localKeys(number func() int64, gone func(int64) bool) {
	noted(r, func(context.Context, *kmsapi.EncryptRequest) int64 { return number() }, func(_ context.Context, _ *kmsapi.DecryptRequest, made int64) error {
		if gone(made) {
			return refuse("the local key is gone")
		}
		return nil
	})
}

// noted notes something about each ciphertext, and has Decrypt judge it.
func noted[V any](r *Reference, note func(context.Context, *kmsapi.EncryptRequest) V, judge func(context.Context, *kmsapi.DecryptRequest, V) error) {
	var notes memory[V]
	r.Encrypt.after(func(ctx context.Context, q *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
		notes.set(resp.Ciphertext, note(ctx, q))
	})
	r.Decrypt.before(func(ctx context.Context, q *kmsapi.DecryptRequest) error {
		if v, ok := notes.get(q.Ciphertext); ok {
			return judge(ctx, q, v)
		}
		return nil
	})
}

func cutTo(n int) func(*Reference) {
	return beforeEncrypt(func(q *kmsapi.EncryptRequest) { q.Plaintext = q.Plaintext[:min(n, len(q.Plaintext))] })
}

// sealWith makes Encrypt use the nonces of a function, which gets the plaintext and the key.
func sealWith(nonce func(plaintext, key []byte) []byte) func(*Reference) {
	return func(r *Reference) {
		r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
			resp, err := next(ctx, q)
			return r.reseal(resp, err, func(key []byte) []byte {
				n := nonce(q.Plaintext, key)
				return gcm(key).Seal(n, n, q.Plaintext, nil)
			})
		})
	}
}

// unlimited makes Encrypt accept plaintexts of any length.
func unlimited(r *Reference) {
	r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
		resp, err := next(ctx, &kmsapi.EncryptRequest{Uid: q.Uid})
		return r.reseal(resp, err, func(key []byte) []byte { return seal(key, q.Plaintext, nil) })
	})
}

// reseal puts into an answer what ciphertext returns for the key of the answer.
func (r *Reference) reseal(resp *kmsapi.EncryptResponse, err error, ciphertext func(key []byte) []byte) (*kmsapi.EncryptResponse, error) {
	if err != nil {
		return nil, err
	}
	key, err := r.keyOf(resp.KeyId)
	if err != nil {
		return nil, err
	}
	resp.Ciphertext = ciphertext(key)
	return resp, nil
}

// counted puts a counter at the end of a nonce. sequence reads it.
func counted(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, nonceBytes-8), n) }

func sequence(nonce []byte) uint64 { return binary.BigEndian.Uint64(nonce[nonceBytes-8:]) }

// memory is a map for the calls of a mutant, which may be concurrent.
type memory[V any] struct{ m sync.Map }

func (m *memory[V]) get(key []byte) (v V, ok bool) {
	stored, ok := m.m.Load(string(key))
	if ok {
		v = stored.(V)
	}
	return v, ok
}

func (m *memory[V]) set(key []byte, v V) { m.m.Store(string(key), v) }
