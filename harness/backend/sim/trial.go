package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/preflight"
)

// trial is a plugin that an operator tries, on no node, as a client sees it, and the time in which it does so. It is for a task.
type trial struct {
	s      *shift
	plugin *kmsPlugin
	ctx    context.Context
	limit  time.Duration
}

var (
	_ kmsapi.KeyManagementServiceClient = (*trial)(nil)
	_ preflight.Time                    = (*trial)(nil)
)

// preflightNode is the node of a plugin that is on none.
const preflightNode = "preflight"

func newTrial(s *shift, c config.Plugin) (*trial, error) {
	p := s.o.e.pods
	p.tries++
	keyID := fmt.Sprintf("try-%d", p.tries)
	if err := p.introduce(preflightNode, keyID, c); err != nil {
		return nil, err
	}
	t := &trial{s: s, plugin: newPlugin(p.e.w, preflightNode, keyID), limit: operated.Check}
	t.ctx, _ = t.Within(p.e.w.ctx, t.limit)
	return t, nil
}

func (t *trial) start() error { return t.s.o.e.pods.await(&t.plugin.proc, start) }

// end ends the plugin, also when the operator has ended.
func (t *trial) end() { _ = t.s.o.e.pods.await(&t.plugin.proc, stop) } // ends with the simulation at the latest

// until is the instant at which a context ends, in virtual time.
type until struct{}

// Now implements preflight.Time.
func (t *trial) Now() time.Time { return t.s.k.Now() }

// Within implements preflight.Time. What is in a context that ends sooner ends with it.
func (t *trial) Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	at := t.Now().Add(limit)
	if outer, bounded := ctx.Value(until{}).(time.Time); bounded && outer.Before(at) {
		at = outer
	}
	return context.WithValue(ctx, until{}, at), func() {}
}

// rest is what is left of a context.
func (t *trial) rest(ctx context.Context) time.Duration {
	at, _ := ctx.Value(until{}).(time.Time)
	return at.Sub(t.Now())
}

// Pause implements preflight.Time.
func (t *trial) Pause(ctx context.Context, d time.Duration) error {
	if err := t.s.k.Sleep(min(d, max(t.rest(ctx), 0))); err != nil {
		return err
	}
	if t.rest(ctx) <= 0 {
		return context.DeadlineExceeded
	}
	return t.s.ended()
}

// call is one RPC of the client.
func (t *trial) call(ctx context.Context, method fault.Method, req any) (resp any, err error) {
	if t.rest(ctx) <= 0 {
		return nil, status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	}
	var got response
	err = t.s.k.Suspend(func(done func()) {
		t.plugin.call(method, req, t.rest(ctx), func(r response) { got = r; done() })
	})
	if err == nil {
		err = got.problem()
	}
	return got.resp, err
}

// problem is the error that a gRPC client has.
func (r response) problem() error {
	if r.code == codes.OK.String() {
		return nil
	}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if c.String() == r.code {
			return status.Error(c, r.text)
		}
	}
	return errors.New(r.code + ": " + r.text)
}

// Status implements the client of the KMS v2 API.
func (t *trial) Status(ctx context.Context, in *kmsapi.StatusRequest, _ ...grpc.CallOption) (*kmsapi.StatusResponse, error) {
	return answered[*kmsapi.StatusResponse](t.call(ctx, fault.Status, in))
}

// Encrypt implements the client of the KMS v2 API.
func (t *trial) Encrypt(ctx context.Context, in *kmsapi.EncryptRequest, _ ...grpc.CallOption) (*kmsapi.EncryptResponse, error) {
	return answered[*kmsapi.EncryptResponse](t.call(ctx, fault.Encrypt, in))
}

// Decrypt implements the client of the KMS v2 API.
func (t *trial) Decrypt(ctx context.Context, in *kmsapi.DecryptRequest, _ ...grpc.CallOption) (*kmsapi.DecryptResponse, error) {
	return answered[*kmsapi.DecryptResponse](t.call(ctx, fault.Decrypt, in))
}

// answered is the message of a type; one without content is none.
func answered[R any](resp any, err error) (R, error) {
	r, _ := resp.(R)
	return r, err
}
