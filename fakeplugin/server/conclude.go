package server

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

type Answer struct {
	Resp    any
	Err     error
	Outcome journal.Outcome
}

// Conclude is what a plan makes of the honest answer, after its holds and where the connection lives: a function of values, so
// that a simulated plugin answers as a real one does.
func Conclude(plan fault.Plan, kekID func(version int) string, honest func() (any, error)) Answer {
	switch {
	case plan.Error != nil:
		return Answer{Err: status.Error(plan.Error.Code, plan.Error.Text), Outcome: journal.Failed}
	case plan.Nil == fault.NilNone:
		return Answer{Err: noMessage{}, Outcome: journal.Nil}
	}
	resp, err := honest()
	if err != nil {
		return Answer{Err: err, Outcome: journal.Failed}
	}
	if plan.Nil == fault.NilEmpty {
		return Answer{Resp: wire{}, Outcome: journal.Nil}
	}
	falsify(resp, plan.Edits, kekID)
	return Answer{Resp: resp, Outcome: journal.Answered}
}

// noMessage makes gRPC send the status OK without a message.
type noMessage struct{}

func (noMessage) Error() string { return "no message" }

// GRPCStatus is what gRPC asks an error for.
func (noMessage) GRPCStatus() *status.Status { return status.New(codes.OK, "") }
