package kmsplugin

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	kmsapi "k8s.io/kms/apis/v2"
)

type (
	encryptFunc func(context.Context, *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error)
	decryptFunc func(context.Context, *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error)
)

// beforeEncrypt changes each request to Encrypt. An error refuses the request.
func beforeEncrypt(f func(*kmsapi.EncryptRequest) error) func(*Reference) {
	return func(r *Reference) {
		next := r.Encrypt
		r.Encrypt = func(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
			if err := f(q); err != nil {
				return nil, err
			}
			return next(ctx, q)
		}
	}
}

// afterEncrypt changes each answer of Encrypt, by its request.
func afterEncrypt(f func(*kmsapi.EncryptRequest, *kmsapi.EncryptResponse)) func(*Reference) {
	return func(r *Reference) {
		next := r.Encrypt
		r.Encrypt = func(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
			resp, err := next(ctx, q)
			if err == nil {
				f(q, resp)
			}
			return resp, err
		}
	}
}

// beforeDecrypt changes each request to Decrypt. An error refuses the request.
func beforeDecrypt(f func(*kmsapi.DecryptRequest) error) func(*Reference) {
	return aroundDecrypt(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptFunc) (*kmsapi.DecryptResponse, error) {
		if err := f(q); err != nil {
			return nil, err
		}
		return next(ctx, q)
	})
}

// aroundEncrypt and aroundDecrypt replace a method by one that may call the correct one.
func aroundEncrypt(f func(context.Context, *kmsapi.EncryptRequest, encryptFunc) (*kmsapi.EncryptResponse, error)) func(*Reference) {
	return func(r *Reference) {
		next := r.Encrypt
		r.Encrypt = func(ctx context.Context, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
			return f(ctx, q, next)
		}
	}
}

func aroundDecrypt(f func(context.Context, *kmsapi.DecryptRequest, decryptFunc) (*kmsapi.DecryptResponse, error)) func(*Reference) {
	return func(r *Reference) {
		next := r.Decrypt
		r.Decrypt = func(ctx context.Context, q *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
			return f(ctx, q, next)
		}
	}
}

// together makes several changes.
func together(changes ...func(*Reference)) func(*Reference) {
	return func(r *Reference) {
		for _, change := range changes {
			change(r)
		}
	}
}

// anyKey makes Decrypt ignore the key_id and try all keys.
func anyKey(r *Reference) {
	aroundDecrypt(func(ctx context.Context, q *kmsapi.DecryptRequest, next decryptFunc) (*kmsapi.DecryptResponse, error) {
		keys, err := r.KMS.Keys()
		if err != nil {
			return nil, err
		}
		var resp *kmsapi.DecryptResponse
		for _, key := range keys {
			q.KeyId = KeyID(key)
			if resp, err = next(ctx, q); err == nil {
				break
			}
		}
		return resp, err
	})(r)
}

func (r *Reference) keyOf(keyID string) ([]byte, error) {
	keys, err := r.KMS.Keys()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(keys, func(key []byte) bool { return KeyID(key) == keyID })
	if i < 0 {
		return nil, refuse("no key has this key_id")
	}
	return keys[i], nil
}

// sealWith makes Encrypt use the nonces of a function, which gets the plaintext and the key.
func sealWith(nonce func(plaintext, key []byte) []byte) func(*Reference) {
	return func(r *Reference) {
		aroundEncrypt(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptFunc) (*kmsapi.EncryptResponse, error) {
			resp, err := next(ctx, q)
			if err != nil {
				return nil, err
			}
			keys, err := r.KMS.Keys()
			if err != nil {
				return nil, err
			}
			key := keys[len(keys)-1]
			n := nonce(q.Plaintext, key)
			resp.Ciphertext, resp.KeyId = gcm(key).Seal(n, n, q.Plaintext, nil), KeyID(key)
			return resp, nil
		})(r)
	}
}

// refuse is the error of a mutant that must not refuse.
func refuse(text string) error { return status.Error(codes.InvalidArgument, text) }

// memory is a map for the calls of a mutant, which may be concurrent.
type memory[V any] struct {
	mu sync.Mutex
	m  map[string]V
}

func (m *memory[V]) get(key []byte) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.m[string(key)]
	return v, ok
}

// set stores a value and returns how many are stored.
func (m *memory[V]) set(key []byte, v V) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[string]V{}
	}
	m.m[string(key)] = v
	return len(m.m)
}

// counted puts a counter at the end of a nonce.
func counted(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, nonceBytes-8), n) }

// reading makes the server read messages with a function in front of protobuf's parser. It returns the message to parse.
func reading(f func([]byte) ([]byte, error)) func(*Reference) {
	return func(r *Reference) {
		r.Options = append(r.Options, grpc.ForceServerCodecV2(codec{CodecV2: encoding.GetCodecV2(proto.Name), read: f}))
	}
}

// parserErrorsIgnored makes the server use what was parsed before an error.
func parserErrorsIgnored(r *Reference) {
	r.Options = append(r.Options, grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name), func(m []byte) ([]byte, error) { return m, nil }, true}))
}

// codec is that of protobuf with a function in front.
type codec struct {
	encoding.CodecV2
	read func([]byte) ([]byte, error)
	// lenient ignores the errors of the parser.
	lenient bool
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	message, err := c.read(data.Materialize())
	if err != nil {
		return err
	}
	err = c.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, v)
	if c.lenient {
		return nil
	}
	return err
}

type wireField struct {
	number protowire.Number
	kind   protowire.Type
	whole  []byte // with its tag
}

// fields splits a message. It stops where the message is malformed.
func fields(message []byte) (list []wireField) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return list
		}
		list = append(list, wireField{number, kind, message[:n]})
		message = message[n:]
	}
	return list
}

// sequence is the counter of a nonce of counted.
func sequence(nonce []byte) uint64 { return binary.BigEndian.Uint64(nonce[nonceBytes-8:]) }
