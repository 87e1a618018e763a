package plugin

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	kmsapi "k8s.io/kms/apis/v2"
)

// consequenceNoAnswer is that of a call that was neither answered nor refused.
const consequenceNoAnswer = "The request to kube-apiserver fails without a reason, in the worst case after the timeout of the call."

// try makes a call that a plugin may refuse. The response is its zero value if the plugin refused it with a status, which gRPC sends in an HTTP/2
// response with a content-type. A call without any was ended by the client, and is a Finding: the time was over, the stream was reset or the connection
// broke.
func try[R any](ctx context.Context, what string, within time.Duration, call func(context.Context, ...grpc.CallOption) (R, error)) (resp R, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var header, trailer metadata.MD
	if resp, err = call(ctx, grpc.Header(&header), grpc.Trailer(&trailer)); err == nil || len(header)+len(trailer) > 0 {
		return resp, nil
	}
	f := found(what, err, "an answer or a gRPC status from the plugin within "+within.String())
	f.Consequence = consequenceNoAnswer
	return resp, f
}

// patience bounds a call with a request of so many bytes. A request that is larger than any of kube-apiserver's may take longer.
func (c *client) patience(size int) time.Duration {
	if size > 2*maxAnnotationsBytes {
		return max(c.timing.Load, c.timing.Call)
	}
	return c.timing.Call
}

// tryEncrypt tries Encrypt. The response is nil if the plugin refused the request.
func tryEncrypt(ctx context.Context, p *Plugin, what string, q *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	return try(ctx, what, p.patience(proto.Size(q)), func(ctx context.Context, options ...grpc.CallOption) (*kmsapi.EncryptResponse, error) {
		return p.Client().Encrypt(ctx, q, options...)
	})
}

// tryDecrypt tries Decrypt. If the plugin answers, the plaintext must be one of the allowed ones.
func tryDecrypt(ctx context.Context, p *Plugin, what string, q *kmsapi.DecryptRequest, allowed ...[]byte) error {
	resp, err := try(ctx, what, p.patience(proto.Size(q)), func(ctx context.Context, options ...grpc.CallOption) (*kmsapi.DecryptResponse, error) {
		return p.Client().Decrypt(ctx, q, options...)
	})
	if err != nil || resp == nil {
		return err
	}
	return allow(what, resp.Plaintext, allowed)
}

// allow returns a Finding for a plaintext that is none of the allowed ones.
func allow(what string, plaintext []byte, allowed [][]byte) error {
	if slices.ContainsFunc(allowed, func(a []byte) bool { return bytes.Equal(a, plaintext) }) {
		return nil
	}
	expected := "an error, or the plaintext that was encrypted"
	if len(allowed) == 0 {
		expected = "an error"
	}
	return found(what, fmt.Sprintf("success, with %d bytes that were not encrypted", len(plaintext)), expected)
}

// tryRaw tries a method with bytes. The response is nil if the plugin refused them.
func tryRaw(ctx context.Context, p *Plugin, what, method string, request []byte) ([]byte, error) {
	return try(ctx, what, p.timing.Call, func(ctx context.Context, options ...grpc.CallOption) ([]byte, error) {
		resp, err := p.Raw(ctx, method, request, options...)
		if err != nil {
			return nil, err // an answer may come before it
		}
		return append([]byte{}, resp...), nil
	})
}

// request is a further request to decrypt s. The caller may change its fields and the entries of the annotations, but no byte in place.
func (s Sealed) request(p *Plugin) *kmsapi.DecryptRequest {
	return &kmsapi.DecryptRequest{Uid: p.UID(), Ciphertext: s.Ciphertext, KeyId: s.KeyId, Annotations: maps.Clone(s.Annotations)}
}

// tryAltered decrypts s with a request that change alters. If the plugin answers, the plaintext must be that of s or of one of the others.
func tryAltered(ctx context.Context, p *Plugin, s Sealed, what string, change func(*kmsapi.DecryptRequest), others ...Sealed) error {
	q := s.request(p)
	change(q)
	allowed := [][]byte{s.Plaintext}
	for _, o := range others {
		allowed = append(allowed, o.Plaintext)
	}
	return tryDecrypt(ctx, p, what, q, allowed...)
}

// mayRoundTrip encrypts and decrypts a plaintext that a plugin may refuse to encrypt. A plugin that accepts it must give it back, but it need not
// decrypt a ciphertext that kube-apiserver would have refused for its size. with describes the request.
func mayRoundTrip(ctx context.Context, p *Plugin, with string, q *kmsapi.EncryptRequest) error {
	resp := need(tryEncrypt(ctx, p, "Encrypt "+with, q))
	if resp == nil {
		p.Measure("refused: Encrypt %s", with)
		return nil
	}
	sealed, what := Sealed{q.Plaintext, resp}, "Decrypt of the ciphertext of an Encrypt "+with
	if len(resp.Ciphertext) > maxCiphertextBytes {
		return tryDecrypt(ctx, p, what, sealed.request(p), q.Plaintext)
	}
	return p.Unseal(ctx, sealed, what)
}

// mayEncrypt is mayRoundTrip for a plaintext with a new uid.
func mayEncrypt(ctx context.Context, p *Plugin, plaintext []byte, what string) error {
	return mayRoundTrip(ctx, p, "of "+what, &kmsapi.EncryptRequest{Uid: p.UID(), Plaintext: plaintext})
}

// each calls f for values until one is an error.
func each[V any](values []V, f func(V) error) error {
	for _, v := range values {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// repeat calls f up to n times and ends early when the time of a check with many calls has passed. It returns the number of calls.
func repeat(p *Plugin, n int, within time.Duration, f func(i int) error) (int, error) {
	began := time.Now()
	for i := range n {
		if i > 0 && time.Since(began) >= within {
			p.Measure("%d of %d calls within %v", i, n, within)
			return i, nil
		}
		if err := f(i); err != nil {
			return i, err
		}
	}
	return n, nil
}

// withSealed is a check that begins with a valid ciphertext of a random seed.
func withSealed(run func(context.Context, *Plugin, Sealed) error) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		return run(ctx, p, need(p.Seal(ctx)))
	}
}

// withStatus is a check that begins with an answer of Status.
func withStatus(run func(context.Context, *Plugin, *kmsapi.StatusResponse) error) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		return run(ctx, p, need(p.answer(ctx, "Status")))
	}
}

// withFrames is a check on an HTTP/2 connection of its own.
func withFrames(run func(context.Context, *Plugin, *frames) error) JudgeFunc {
	return func(ctx context.Context, p *Plugin) error {
		f := need(dialFrames(ctx, p))
		defer f.end()
		return run(ctx, p, f)
	}
}
