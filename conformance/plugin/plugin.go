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
	at       endpoint.Endpoint
	timing   Timing
	rand     *rand.Rand
	conn     *grpc.ClientConn // shared by the checks; they dial further ones
	traffic  *traffic
	hooks    *hooks
	owned    *ownProcess // nil: the suite did not start the plugin
	log      logSource
	measured []string
	// restarts counts how often the suite ended and started the plugin.
	restarts int
	// answered reports whether Status has answered after some start.
	answered bool
	// broken is the mode in which the check broke the KMS; empty: it did not.
	broken string
	// steady has the modes in which Status stays "ok".
	steady  map[string]bool
	starved starved
	// waiting receives a line while the plugin does not listen.
	waiting func(string)
}

func (p *Plugin) Endpoint() endpoint.Endpoint { return p.at }

// Timing has the bounds of the run.
func (p *Plugin) Timing() Timing { return p.timing }

// Measure adds a number to the result of the check.
func (p *Plugin) Measure(format string, args ...any) {
	p.measured = append(p.measured, fmt.Sprintf(format, args...))
}

// Bytes returns n random bytes. The seed of the run decides which.
func (p *Plugin) Bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(p.rand.Uint32())
	}
	return b
}

// UID returns the uid of one operation, as kube-apiserver makes it. The seed of the run decides which.
func (p *Plugin) UID() string {
	id, _ := uuid.FromBytes(p.Bytes(16)) // 16 bytes are always a UUID
	return id.String()
}

// Client calls the plugin over the connection that the checks share. It is safe for concurrent use. A call without a deadline waits for ever.
func (p *Plugin) Client() kmsapi.KeyManagementServiceClient {
	return kmsapi.NewKeyManagementServiceClient(p.conn)
}

// Status calls Status once, with the deadline of a call.
func (p *Plugin) Status(ctx context.Context) (*kmsapi.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	return p.Client().Status(ctx, &kmsapi.StatusRequest{})
}

// Encrypt calls Encrypt once, with a new uid and the deadline of a call.
func (p *Plugin) Encrypt(ctx context.Context, plaintext []byte) (*kmsapi.EncryptResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	return p.Client().Encrypt(ctx, &kmsapi.EncryptRequest{Uid: p.UID(), Plaintext: plaintext})
}

// Decrypt calls Decrypt once with what Encrypt returned, as kube-apiserver does, with a new uid and the deadline of a call.
func (p *Plugin) Decrypt(ctx context.Context, sealed *kmsapi.EncryptResponse) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Call)
	defer cancel()
	resp, err := p.Client().Decrypt(ctx, &kmsapi.DecryptRequest{
		Uid: p.UID(), Ciphertext: sealed.Ciphertext, KeyId: sealed.KeyId, Annotations: sealed.Annotations,
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
func (p *Plugin) Seal(ctx context.Context) (Sealed, error) {
	plaintext := p.Bytes(SeedBytes)
	resp, err := p.Encrypt(ctx, plaintext)
	if err != nil {
		return Sealed{}, found(fmt.Sprintf("Encrypt of %d bytes", SeedBytes), err, "a ciphertext")
	}
	return Sealed{plaintext, resp}, nil
}

// Unseal decrypts and compares. A difference and an error of the plugin are Findings, whose request is described by what.
func (p *Plugin) Unseal(ctx context.Context, s Sealed, what string) error {
	plaintext, err := p.Decrypt(ctx, s.EncryptResponse)
	if err != nil {
		return found(what, err, "the plaintext that was encrypted")
	}
	if string(plaintext) != string(s.Plaintext) {
		return found(what, fmt.Sprintf("%d bytes that differ from the plaintext", len(plaintext)), fmt.Sprintf("the %d bytes that were encrypted", len(s.Plaintext)))
	}
	return nil
}

// Poll calls try at once and then at every interval until it returns true, or until the time has passed. It reports whether try did, and when.
func (p *Plugin) Poll(ctx context.Context, every, within time.Duration, try func(context.Context) bool) (took time.Duration, ok bool) {
	began := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if try(ctx) {
			return time.Since(began), true
		}
		if time.Since(began) >= within {
			p.traffic.late.Store(true)
			return time.Since(began), false
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return time.Since(began), false
		}
	}
}

// found is a Finding: the request, what came of it (an error, a response or a text) and what the rule expects.
func found(request string, response any, expected string) error {
	err, _ := response.(error)
	return &conformance.Finding{Evidence: conformance.Evidence{Request: request, Response: show(response), Expected: expected}, Late: late(err) || errors.Is(err, os.ErrDeadlineExceeded)}
}
