package plugin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
)

// SeedBytes is the size of what kube-apiserver encrypts with a plugin: a seed or a key of 32 bytes (KEP-3299).
const SeedBytes = 32

// Plugin is the plugin under test as a check uses it. It is for one goroutine, except where a method says otherwise.
type Plugin struct {
	*client
	*ownProcess
	*hooks
	logSource
	measured []string
	// dir is a folder for the files of checks.
	dir string
	// secondAt is another instance; zero: the author names none.
	secondAt endpoint.Endpoint
	// addresses are two of the KMS.
	addresses []string
	// steady has the modes in which Status stays "ok".
	steady  map[string]bool
	starved starved
}

// Measure adds a number to the result of the check.
func (p *Plugin) Measure(format string, args ...any) {
	p.measured = append(p.measured, fmt.Sprintf(format, args...))
}

// client calls the plugin.
type client struct {
	random
	at      endpoint.Endpoint
	timing  Timing
	conn    *grpc.ClientConn // shared by the checks; they dial further ones
	traffic *traffic
}

// random makes what requests are made of. The seed of the run decides what.
type random struct{ rand *rand.Rand }

// Bytes returns n random bytes.
func (r random) Bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.rand.Uint32())
	}
	return b
}

// UID returns the uid of one operation, as kube-apiserver makes it: it uses none twice.
func (r random) UID() string {
	id, _ := uuid.FromBytes(r.Bytes(16)) // 16 bytes are always a UUID
	return id.String()
}

// Client calls the plugin over the connection that the checks share. It is safe for concurrent use. A call without a deadline waits for ever.
func (c *client) Client() kmsapi.KeyManagementServiceClient {
	return kmsapi.NewKeyManagementServiceClient(c.conn)
}

// Status calls Status once, with the deadline of a call.
func (c *client) Status(ctx context.Context) (*kmsapi.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timing.Call)
	defer cancel()
	return c.Client().Status(ctx, &kmsapi.StatusRequest{})
}

// answer is Status, whose error is a Finding. what describes the request.
func (c *client) answer(ctx context.Context, what string) (*kmsapi.StatusResponse, error) {
	resp, err := c.Status(ctx)
	if err != nil {
		return nil, found(what, err, "a response")
	}
	return resp, nil
}

// Encrypt calls Encrypt once, with a new uid and the deadline of a call.
func (c *client) Encrypt(ctx context.Context, plaintext []byte) (*kmsapi.EncryptResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timing.Call)
	defer cancel()
	return c.Client().Encrypt(ctx, &kmsapi.EncryptRequest{Uid: c.UID(), Plaintext: plaintext})
}

// Decrypt calls Decrypt once with what Encrypt returned, as kube-apiserver does, with a new uid and the deadline of a call.
func (c *client) Decrypt(ctx context.Context, sealed *kmsapi.EncryptResponse) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timing.Call)
	defer cancel()
	resp, err := c.Client().Decrypt(ctx, &kmsapi.DecryptRequest{
		Uid: c.UID(), Ciphertext: sealed.Ciphertext, KeyId: sealed.KeyId, Annotations: sealed.Annotations,
	})
	if err != nil {
		return nil, err
	}
	return resp.Plaintext, nil
}

// Sealed is a plaintext and what the plugin made of it.
type Sealed struct {
	Plaintext []byte
	*kmsapi.EncryptResponse
}

// Seal encrypts a random seed. An error of the plugin is a Finding.
func (c *client) Seal(ctx context.Context) (Sealed, error) {
	return c.seal(ctx, c.Bytes(SeedBytes), fmt.Sprintf("%d bytes", SeedBytes))
}

// seal encrypts a plaintext. An error of the plugin is a Finding, whose request is Encrypt of what.
func (c *client) seal(ctx context.Context, plaintext []byte, what string) (Sealed, error) {
	resp, err := c.Encrypt(ctx, plaintext)
	if err != nil {
		return Sealed{}, found("Encrypt of "+what, err, "a ciphertext")
	}
	return Sealed{plaintext, resp}, nil
}

// Unseal decrypts and compares. A difference and an error of the plugin are Findings, whose request is described by what.
func (c *client) Unseal(ctx context.Context, s Sealed, what string) error {
	plaintext, err := c.Decrypt(ctx, s.EncryptResponse)
	if err != nil {
		return found(what, err, "the plaintext that was encrypted")
	}
	if string(plaintext) != string(s.Plaintext) {
		return found(what, fmt.Sprintf("%d bytes that differ from the plaintext", len(plaintext)), fmt.Sprintf("the %d bytes that were encrypted", len(s.Plaintext)))
	}
	return nil
}

// unsealAll decrypts all and compares.
func (c *client) unsealAll(ctx context.Context, all []Sealed, what string) error {
	return each(all, func(s Sealed) error { return c.Unseal(ctx, s, what) })
}

// roundTrip encrypts a random seed, decrypts it and compares.
func (c *client) roundTrip(ctx context.Context, what string) error {
	s, err := c.Seal(ctx)
	if err != nil {
		return err
	}
	return c.Unseal(ctx, s, what)
}

// Poll calls try at once and then at every interval until it returns true, or until the time has passed. It reports whether try did, and when.
func (c *client) Poll(ctx context.Context, every, within time.Duration, try func(context.Context) bool) (took time.Duration, ok bool) {
	began := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if try(ctx) {
			return time.Since(began), true
		}
		if time.Since(began) >= within {
			c.traffic.late.Store(true)
			return time.Since(began), false
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return time.Since(began), false
		}
	}
}

// until calls try as Poll does until it returns nil. Otherwise it returns the last error.
func (c *client) until(ctx context.Context, every, within time.Duration, try func(context.Context) error) (err error) {
	c.Poll(ctx, every, within, func(ctx context.Context) bool {
		err = try(ctx)
		return err == nil
	})
	return err
}

// watch calls judge as Poll does for a time. It returns the first error.
func (c *client) watch(ctx context.Context, within time.Duration, judge func(context.Context) error) (err error) {
	c.Poll(ctx, pollInterval, within, func(ctx context.Context) bool {
		err = judge(ctx)
		return err != nil
	})
	return err
}

// found is a Finding: the request, what came of it (an error, a response or a text) and what the rule expects.
func found(request string, response any, expected string) *conformance.Finding {
	err, _ := response.(error)
	return &conformance.Finding{Evidence: conformance.Evidence{Request: request, Response: show(response), Expected: expected}, Late: late(err) || errors.Is(err, os.ErrDeadlineExceeded)}
}
