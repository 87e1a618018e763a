package server

import (
	"context"
	"errors"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
)

// intercept stands between gRPC and the honest plugin.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	began := s.clock.Now()
	m := fault.Method(path.Base(info.FullMethod))
	plan := s.o.Program.Plan(m)
	ctx, req = received(ctx, plan, req)
	var trueID string
	a := s.perform(ctx, plan, func() (any, error) {
		resp, err := handler(bound(ctx), s.relabelled.restored(req))
		encrypted, _ := resp.(*kmsapi.EncryptResponse)
		trueID = encrypted.GetKeyId()
		return resp, err
	})
	s.relabelled.note(a.resp, trueID)
	if err := ctx.Err(); err != nil && a.outcome != journal.Reset && a.outcome != journal.Crashed {
		if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
			err = context.DeadlineExceeded // at its deadline gRPC ends a call in two ways, in any order
		}
		a = answer{err: status.FromContextError(err).Err(), outcome: journal.Abandoned}
	}
	out, unreadable := encodable(a.resp)
	s.record(m, req, plan, a, began, unreadable)
	return out, a.err
}

// perform carries out a plan, in the order that Plan documents.
func (s *Server) perform(ctx context.Context, plan fault.Plan, honest func() (any, error)) answer {
	for _, hold := range plan.Holds {
		if !s.wait(ctx, hold) {
			return answer{outcome: journal.Abandoned}
		}
	}
	switch {
	case plan.Crash:
		return s.crash(ctx)
	case plan.Reset != nil && !plan.Reset.Truncate:
		return s.reset(ctx, plan.Reset.After)
	}
	a := s.conclude(plan, honest)
	if errors.Is(a.err, ErrGone) {
		return s.reset(ctx, 0)
	}
	if plan.Reset != nil && a.outcome == journal.Answered {
		a.outcome = journal.Reset
		return s.breakAfter(ctx, plan.Reset.After, a, func(c *conn) { c.truncate.Store(true) })
	}
	return a
}

// wait is false if the caller went away first.
func (s *Server) wait(ctx context.Context, h fault.Wait) bool {
	var over <-chan time.Time
	if h.For > 0 {
		timer := s.clock.NewTimer(h.For)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-over:
		return true
	case <-h.Released:
		return true
	case <-ctx.Done():
		return false
	}
}

// reset breaks the call's connection; its context ends with it.
func (s *Server) reset(ctx context.Context, after time.Duration) answer {
	return s.breakAfter(ctx, after, answer{err: errBroken, outcome: journal.Reset}, func(c *conn) { _ = c.Close() })
}

// breakAfter waits, and does something to the call's connection.
func (s *Server) breakAfter(ctx context.Context, after time.Duration, a answer, do func(*conn)) answer {
	if after > 0 && !s.wait(ctx, fault.Wait{For: after}) {
		return answer{outcome: journal.Abandoned}
	}
	if c := connOf(ctx); c != nil {
		do(c)
	}
	return a
}

// errBroken is what the caller of a broken connection sees from its own library.
var errBroken = status.Error(codes.Unavailable, "the plugin broke the connection")

// crash takes the plugin down: the fault that struck this call now decides the state of the socket. Run does that,
// not the call itself, because a listener that closes may wait for the calls under way.
func (s *Server) crash(ctx context.Context) answer {
	s.changed()
	<-ctx.Done()
	return answer{err: errBroken, outcome: journal.Crashed}
}

// received is a request as the plugin gets it, which is not always as it was sent: a plan may take its uid away.
func received(ctx context.Context, plan fault.Plan, req any) (context.Context, any) {
	if plan.UID == "" {
		return ctx, req
	}
	if plan.UID == fault.UIDDropped {
		ctx = plugin.AcceptingNoUID(ctx)
	}
	switch r := req.(type) {
	case *kmsapi.EncryptRequest:
		return ctx, &kmsapi.EncryptRequest{Plaintext: r.Plaintext}
	case *kmsapi.DecryptRequest:
		return ctx, &kmsapi.DecryptRequest{Ciphertext: r.Ciphertext, KeyId: r.KeyId, Annotations: r.Annotations}
	}
	return ctx, req
}
