package kmsplugin

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"
)

func hostileMutants() []Mutant {
	return []Mutant{
		{Name: "refusal-poisons-status", Mistake: "For two seconds after a refused Decrypt healthz shows the refusal.", Caught: "KMS2-HOSTILE-STATUS-STAYS", Change: refusalPoisons},
		{Name: "failure-closes-connections", Mistake: "A Decrypt that fails closes all connections.", Caught: "KMS2-HOSTILE-STATUS", Change: failureCloses},
		{Name: "unencrypted-accepted", Mistake: "Decrypt returns what it cannot decrypt, as data that was never encrypted.", Caught: "KMS2-HOSTILE-GARBAGE",
			Change: func(r *Reference) {
				onFailure(func(q *kmsapi.DecryptRequest) bool {
					_, err := r.keyOf(q.KeyId)
					return err == nil && string(q.Annotations[annotation]) == "1" && len(q.Ciphertext) > 0
				}, (*kmsapi.DecryptRequest).GetCiphertext)(r)
			}},
		{Name: "empty-decrypted", Mistake: "Decrypt takes an empty ciphertext for an empty plaintext.", Caught: "KMS2-HOSTILE-CIPHERTEXT-EMPTY",
			Change: onFailure(func(q *kmsapi.DecryptRequest) bool { return len(q.Ciphertext) == 0 }, nothing)},
		{Name: "blocks-uncounted", Mistake: "Blocks of 16 bytes are encrypted one by one. Missing ones are not noticed.", Caught: "KMS2-HOSTILE-CIPHERTEXT-TRUNCATED",
			Change: blocks(func(int, int) []byte { return nil })},
		{Name: "blocks-unbound", Mistake: "Blocks of 16 bytes are encrypted one by one. Those of another plaintext are not noticed.", Caught: "KMS2-HOSTILE-CIPHERTEXT-SPLICED",
			Change: blocks(func(i, n int) []byte { return []byte{byte(i), byte(i >> 8), byte(n), byte(n >> 8)} })},
		{Name: "rest-returned", Mistake: "Decrypt returns what follows the ciphertext, as a part that is not encrypted.", Caught: "KMS2-HOSTILE-CIPHERTEXT-EXTENDED", Change: restReturned},
		{Name: "mask-in-ciphertext", Mistake: "A mask before the ciphertext is not authenticated.", Caught: "KMS2-HOSTILE-CIPHERTEXT-FLIPPED", Change: maskInCiphertext},
		{Name: "unknown-key-empty", Mistake: "Decrypt ignores the error for a key_id that it does not know.", Caught: "KMS2-HOSTILE-KEY-ID-UNKNOWN",
			Change: func(r *Reference) {
				onFailure(func(q *kmsapi.DecryptRequest) bool {
					_, err := r.keyOf(q.KeyId)
					return err != nil && q.KeyId != "" && len(q.Ciphertext) > 0
				}, nothing)(r)
			}},
		{Name: "no-key-identity", Mistake: "Decrypt without a key_id returns the ciphertext.", Caught: "KMS2-HOSTILE-KEY-ID-MISSING",
			Change: onFailure(func(q *kmsapi.DecryptRequest) bool { return q.KeyId == "" }, (*kmsapi.DecryptRequest).GetCiphertext)},
		{Name: "key-id-in-array", Mistake: "Decrypt copies the key_id to an array of 1 KiB.", Caught: "KMS2-HOSTILE-KEY-ID-HUGE",
			Change: beforeDecrypt(func(q *kmsapi.DecryptRequest) {
				var array [1024]byte
				copy(array[:len(q.KeyId)], q.KeyId)
			})},
		{Name: "annotation-indexed", Mistake: "Decrypt reads the first byte of an annotation that it expects.", Caught: "KMS2-HOSTILE-ANNOTATIONS-MISSING",
			Change: func(r *Reference) {
				r.Decrypt.refuse(refuse("the version is not 1"), func(q *kmsapi.DecryptRequest) bool { return q.Annotations[annotation][0] != '1' })
			}},
		{Name: "mask-in-annotation", Mistake: "A mask in an annotation is not authenticated.", Caught: "KMS2-HOSTILE-ANNOTATIONS-ALTERED", Change: maskInAnnotation(false)},
		{Name: "mask-unbound", Mistake: "A mask in an annotation is authenticated, but not for its ciphertext.", Caught: "KMS2-HOSTILE-ANNOTATIONS-SWAPPED", Change: maskInAnnotation(true)},
		{Name: "annotations-counted", Mistake: "Decrypt has a place for one annotation.", Caught: "KMS2-HOSTILE-ANNOTATIONS-EXTRA",
			Change: beforeDecrypt(func(q *kmsapi.DecryptRequest) {
				var places [1]string
				i := 0
				for key := range q.Annotations {
					places[i] = key
					i++
				}
			})},
		{Name: "uid-shortened", Mistake: "The first 8 bytes of the uid are logged.", Caught: "KMS2-HOSTILE-UID-MISSING",
			Change: beforeEncrypt(func(q *kmsapi.EncryptRequest) { _ = q.Uid[:8] })},
		{Name: "uid-parsed", Mistake: "A uid that is no UUID ends the process.", Caught: "KMS2-HOSTILE-UID-MALFORMED",
			Change: beforeDecrypt(func(q *kmsapi.DecryptRequest) {
				if q.Uid != "" {
					uuid.MustParse(q.Uid)
				}
			})},
		{Name: "cut-to-100000", Mistake: "Encrypt has no limit, and takes the first 100,000 bytes.", Caught: "KMS2-HOSTILE-PLAINTEXT-HUGE", Change: together(unlimited, cutTo(100_000))},
		{Name: "message-in-array", Mistake: "gRPC's limit is raised, and a longer plaintext ends the process.", Caught: "KMS2-HOSTILE-MESSAGE-OVERSIZED",
			Change: together(func(r *Reference) { r.Options = append(r.Options, grpc.MaxRecvMsgSize(64<<20)) },
				beforeEncrypt(func(q *kmsapi.EncryptRequest) {
					if len(q.Plaintext) > 4<<20 {
						panic("index out of range")
					}
				}))},
		{Name: "unknown-fields-refused", Mistake: "A field that the API does not have is an error.", Caught: "KMS2-PROTO-UNKNOWN-FIELDS", Also: []string{"KMS2-TRANSPORT-UNKNOWN-FIELDS"},
			Change: reading(func(message []byte) ([]byte, error) {
				if slices.ContainsFunc(fields(message), func(f wireField) bool { return f.number > 4 }) {
					return nil, errors.New("unknown field")
				}
				return message, nil
			})},
		{Name: "fields-ordered", Mistake: "Fields must come in ascending order.", Caught: "KMS2-PROTO-FIELD-ORDER",
			Change: reading(func(message []byte) ([]byte, error) {
				if !slices.IsSortedFunc(fields(message), func(a, b wireField) int { return int(a.number) - int(b.number) }) {
					return nil, errors.New("field out of order")
				}
				return message, nil
			})},
		{Name: "first-field-wins", Mistake: "The first of two equal fields counts.", Caught: "KMS2-PROTO-DUPLICATED", Change: reading(firstFields)},
		{Name: "parser-errors-ignored", Mistake: "The error of the parser is ignored.", Caught: "KMS2-PROTO-TRUNCATED", Change: parserErrorsIgnored},
		{Name: "parser-error-ends", Mistake: "A message that cannot be parsed ends the process.", Caught: "KMS2-PROTO-TRUNCATED",
			Change: reading(func(message []byte) ([]byte, error) {
				for rest := message; len(rest) > 0; {
					_, _, n := protowire.ConsumeField(rest)
					if n < 0 {
						panic("unexpected end of the message")
					}
					rest = rest[n:]
				}
				return message, nil
			})},
		{Name: "empty-ciphertext-breaks-status", Mistake: "After an empty ciphertext, Status is an error until the next start.", Caught: "KMS2-HOSTILE-CIPHERTEXT-EMPTY", Change: emptyBreaksStatus},
		{Name: "empty-ciphertext-ends", Mistake: "An empty ciphertext ends the process, and the next one does not start where the socket file is.",
			Caught: "KMS2-HOSTILE-CIPHERTEXT-EMPTY", Also: []string{"KMS2-LIFECYCLE-RESTART-AFTER-SIGKILL"},
			Change: together(keepsStaleSocket, beforeDecrypt(func(q *kmsapi.DecryptRequest) {
				if len(q.Ciphertext) == 0 {
					panic("slice bounds out of range")
				}
			}))},
		{Name: "wire-type-assumed", Mistake: "A field 1 that is a number ends the process.", Caught: "KMS2-PROTO-WRONG-TYPES",
			Change: reading(func(message []byte) ([]byte, error) {
				if slices.ContainsFunc(fields(message), func(f wireField) bool { return f.number == 1 && f.kind == protowire.VarintType }) {
					panic("not a text")
				}
				return message, nil
			})},
		{Name: "utf8-assumed", Mistake: "A uid that is no UTF-8 ends the process.", Caught: "KMS2-PROTO-INVALID-UTF8",
			Change: reading(func(message []byte) ([]byte, error) {
				if bytes.Contains(message, []byte("\xff\xfe-\xc3\x28-\xed\xa0\x80")) {
					panic("invalid rune")
				}
				return message, nil
			})},
		{Name: "nothing-decrypted", Mistake: "Decrypt of a request without any field succeeds.", Caught: "KMS2-PROTO-EMPTY",
			Change: onFailure(func(q *kmsapi.DecryptRequest) bool { return q.KeyId == "" && len(q.Ciphertext) == 0 }, nothing)},
		{Name: "locks-out", Mistake: "After 190 failures in a row, Decrypt refuses everything until the next Status.", Caught: "KMS2-HOSTILE-KEEPS-SERVING", Change: locksOut},
	}
}

func emptyBreaksStatus(r *Reference) {
	var broken atomic.Bool
	r.Status.refuse(status.Error(codes.Internal, "the session is corrupt"), func(*kmsapi.StatusRequest) bool { return broken.Load() })
	beforeDecrypt(func(q *kmsapi.DecryptRequest) {
		if len(q.Ciphertext) == 0 {
			broken.Store(true)
		}
	})(r)
}

// onFailure makes Decrypt succeed where the correct one fails, for some requests.
func onFailure(applies func(*kmsapi.DecryptRequest) bool, plaintext func(*kmsapi.DecryptRequest) []byte) func(*Reference) {
	return func(r *Reference) {
		r.Decrypt.around(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptMethod) (*kmsapi.DecryptResponse, error) {
			resp, err := next(ctx, q)
			if err != nil && applies(q) {
				return &kmsapi.DecryptResponse{Plaintext: plaintext(q)}, nil
			}
			return resp, err
		})
	}
}

// nothing is an empty plaintext for onFailure.
func nothing(*kmsapi.DecryptRequest) []byte { return nil }

// failureCloses closes the connections under gRPC.
func failureCloses(r *Reference) {
	var conns kept[net.Conn]
	r.accepting(func(c net.Conn) net.Conn {
		conns.add(c)
		return c
	})
	r.Decrypt.ended(func(err error) {
		if err != nil {
			for _, c := range conns.take() {
				_ = c.Close()
			}
		}
	})
}

// blocks makes Encrypt seal each 16 bytes by themselves, with what bound returns for block i of n.
func blocks(bound func(i, n int) []byte) func(*Reference) {
	const size, sealed = 16, nonceBytes + 16 + 16
	return func(r *Reference) {
		r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
			if len(q.Plaintext) == 0 {
				return nil, refuse("1 to 996 bytes are encrypted")
			}
			resp, err := next(ctx, q)
			return r.reseal(resp, err, func(key []byte) (ciphertext []byte) {
				parts := slices.Collect(slices.Chunk(q.Plaintext, size))
				for i, part := range parts {
					ciphertext = append(ciphertext, seal(key, part, bound(i, len(parts)))...)
				}
				return ciphertext
			})
		})
		r.Decrypt.around(func(_ context.Context, q *kmsapi.DecryptRequest, _ decryptMethod) (*kmsapi.DecryptResponse, error) {
			key, err := r.keyOf(q.KeyId)
			if err != nil {
				return nil, err
			}
			if len(q.Ciphertext) == 0 {
				return nil, refuse("the ciphertext is empty")
			}
			resp, parts := &kmsapi.DecryptResponse{}, slices.Collect(slices.Chunk(q.Ciphertext, sealed))
			for i, part := range parts {
				plaintext, err := open(key, part, bound(i, len(parts)))
				if err != nil {
					return nil, err
				}
				resp.Plaintext = append(resp.Plaintext, plaintext...)
			}
			return resp, nil
		})
	}
}

func restReturned(r *Reference) {
	r.Encrypt.after(func(_ context.Context, _ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) {
		n := len(resp.Ciphertext)
		resp.Ciphertext = append([]byte{byte(n >> 8), byte(n)}, resp.Ciphertext...)
	})
	r.Decrypt.around(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptMethod) (*kmsapi.DecryptResponse, error) {
		if len(q.Ciphertext) < 2 {
			return nil, refuse("the ciphertext is too short")
		}
		n, rest := int(q.Ciphertext[0])<<8+int(q.Ciphertext[1]), q.Ciphertext[2:]
		if n > len(rest) {
			return nil, refuse("the ciphertext is too short")
		}
		q.Ciphertext, rest = rest[:n], rest[n:]
		resp, err := next(ctx, q)
		if err == nil {
			resp.Plaintext = append(resp.Plaintext, rest...)
		}
		return resp, err
	})
}

// maskBytes is the length of a mask, which repeats itself.
const maskBytes = 32

// masked encrypts the plaintext after the exclusive or with a mask. put stores the mask in the answer, take reads it from the request.
func masked(put func(*kmsapi.EncryptResponse, []byte) error, take func(*kmsapi.DecryptRequest) ([]byte, error)) func(*Reference) {
	apply := func(data, mask []byte) {
		for part := range slices.Chunk(data, maskBytes) {
			subtle.XORBytes(part, part, mask)
		}
	}
	return func(r *Reference) {
		r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
			mask := random(maskBytes)
			apply(q.Plaintext, mask)
			resp, err := next(ctx, q)
			if err != nil {
				return nil, err
			}
			return resp, put(resp, mask)
		})
		r.Decrypt.around(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptMethod) (*kmsapi.DecryptResponse, error) {
			mask, err := take(q)
			if err != nil {
				return nil, err
			}
			resp, err := next(ctx, q)
			if err == nil {
				apply(resp.Plaintext, mask)
			}
			return resp, err
		})
	}
}

func maskInCiphertext(r *Reference) {
	masked(func(resp *kmsapi.EncryptResponse, mask []byte) error {
		resp.Ciphertext = append(mask, resp.Ciphertext...)
		return nil
	}, func(q *kmsapi.DecryptRequest) ([]byte, error) {
		if len(q.Ciphertext) < maskBytes {
			return nil, refuse("the ciphertext is too short")
		}
		mask := q.Ciphertext[:maskBytes]
		q.Ciphertext = q.Ciphertext[maskBytes:]
		return mask, nil
	})(r)
}

const maskAnnotation = "mask.reference.example.com"

// maskInAnnotation keeps the mask in an annotation, encrypted or not.
func maskInAnnotation(encrypted bool) func(*Reference) {
	return func(r *Reference) {
		masked(func(resp *kmsapi.EncryptResponse, mask []byte) error {
			if encrypted {
				key, err := r.keyOf(resp.KeyId)
				if err != nil {
					return err
				}
				mask = seal(key, mask, nil)
			}
			resp.Annotations[maskAnnotation] = mask
			return nil
		}, func(q *kmsapi.DecryptRequest) ([]byte, error) {
			mask := q.Annotations[maskAnnotation]
			if encrypted && len(mask) > nonceBytes {
				key, err := r.keyOf(q.KeyId)
				if err != nil {
					return nil, err
				}
				if mask, err = open(key, mask, nil); err != nil {
					return nil, err
				}
			}
			if len(mask) != maskBytes {
				return nil, refuse("there is no mask")
			}
			return mask, nil
		})(r)
	}
}

// firstFields removes all but the first of equal fields, except annotations. The parser finds what is wrong with the rest.
func firstFields(message []byte) ([]byte, error) {
	var seen []protowire.Number
	var first []byte
	rest := message
	for _, f := range fields(message) {
		if f.number == 4 || !slices.Contains(seen, f.number) {
			first = append(first, f.whole...)
		}
		seen, rest = append(seen, f.number), rest[len(f.whole):]
	}
	return append(first, rest...), nil
}

func locksOut(r *Reference) {
	const limit = 190
	var failures atomic.Int64
	onStatus(func(int, *kmsapi.StatusResponse) { failures.Store(0) })(r)
	r.Decrypt.ended(func(err error) {
		if err != nil {
			failures.Add(1)
		} else {
			failures.Store(0)
		}
	})
	r.Decrypt.refuse(refuse("locked after too many failures"), func(*kmsapi.DecryptRequest) bool { return failures.Load() >= limit })
}

func refusalPoisons(r *Reference) {
	var refused atomic.Int64 // when the last Decrypt was refused, in nanoseconds
	r.Decrypt.ended(func(err error) {
		if status.Code(err) == codes.InvalidArgument || status.Code(err) == codes.NotFound {
			refused.Store(time.Now().UnixNano())
		}
	})
	onStatus(func(_ int, resp *kmsapi.StatusResponse) {
		if time.Since(time.Unix(0, refused.Load())) < 2*time.Second {
			resp.Healthz = "the last Decrypt failed"
		}
	})(r)
}
