package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

// answer is how a call ended.
type answer struct {
	resp    any
	err     error
	outcome journal.Outcome
}

// intercept stands between gRPC and the honest plugin.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	began := s.clock.Now()
	m := methodOf(info.FullMethod)
	plan := s.program.Plan(m)
	a := s.perform(ctx, plan, func() (any, error) { return handler(ctx, req) })
	if err := ctx.Err(); err != nil && a.outcome != journal.Reset && a.outcome != journal.Crashed {
		a = answer{err: status.FromContextError(err).Err(), outcome: journal.Abandoned}
	}
	out, unreadable := encodable(a.resp)
	s.record(m, req, plan, a, began, unreadable)
	return out, a.err
}

func methodOf(fullMethod string) fault.Method {
	switch fullMethod {
	case kmsapi.KeyManagementService_Encrypt_FullMethodName:
		return fault.Encrypt
	case kmsapi.KeyManagementService_Decrypt_FullMethodName:
		return fault.Decrypt
	default:
		return fault.Status
	}
}

// perform carries out a plan, in the order that Plan documents.
func (s *Server) perform(ctx context.Context, plan fault.Plan, honest func() (any, error)) answer {
	for _, hold := range plan.Holds {
		if !s.wait(ctx, hold) {
			return answer{outcome: journal.Abandoned}
		}
	}
	switch {
	case plan.Crash != nil:
		return s.crash(ctx)
	case plan.Reset != nil && !plan.Reset.Truncate:
		return s.reset(ctx, plan.Reset.After)
	case plan.Error != nil:
		err := status.Error(plan.Error.Code, plan.Error.Text)
		return answer{err: err, outcome: journal.Failed}
	case plan.Nil == fault.NilNone:
		return answer{err: noMessage{}, outcome: journal.Nil}
	}
	resp, err := honest()
	if err != nil {
		return answer{err: err, outcome: journal.Failed}
	}
	if plan.Nil == fault.NilEmpty {
		return answer{resp: wire{}, outcome: journal.Nil}
	}
	falsify(resp, plan.Edits, s.plugin.KEKID)
	if plan.Reset != nil {
		return s.truncate(ctx, resp, plan.Reset.After)
	}
	return answer{resp: resp, outcome: journal.Answered}
}

// noMessage makes gRPC send the status OK without a message.
type noMessage struct{}

func (noMessage) Error() string { return "no message" }

// GRPCStatus is what gRPC asks an error for.
func (noMessage) GRPCStatus() *status.Status { return status.New(codes.OK, "") }

// wait is false if the caller went away first.
func (s *Server) wait(ctx context.Context, h fault.Hold) bool {
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
	if after > 0 && !s.wait(ctx, fault.Hold{For: after}) {
		return answer{outcome: journal.Abandoned}
	}
	if c := connOf(ctx); c != nil {
		_ = c.Close()
	}
	return answer{err: errBroken, outcome: journal.Reset}
}

func (s *Server) truncate(ctx context.Context, resp any, after time.Duration) answer {
	if after > 0 && !s.wait(ctx, fault.Hold{For: after}) {
		return answer{outcome: journal.Abandoned}
	}
	if c := connOf(ctx); c != nil {
		c.truncate.Store(true)
	}
	return answer{resp: resp, outcome: journal.Reset}
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
