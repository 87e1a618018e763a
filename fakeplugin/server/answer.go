package server

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

// falsify applies edits to an honest response. An edit of a field that the response does not have does nothing.
func falsify(resp any, edits []fault.Edit, kekID func(version int) string) {
	for _, e := range edits {
		switch r := resp.(type) {
		case *kmsapi.StatusResponse:
			falsifyStatus(r, e, kekID)
		case *kmsapi.EncryptResponse:
			falsifyEncrypt(r, e, kekID)
		}
	}
}

func falsifyStatus(r *kmsapi.StatusResponse, e fault.Edit, kekID func(int) string) {
	switch e.Field {
	case fault.FieldHealthz:
		r.Healthz = e.Value
	case fault.FieldVersion:
		r.Version = e.Value
	case fault.FieldKeyID:
		r.KeyId = falseKeyID(r.KeyId, e, kekID)
	}
}

func falsifyEncrypt(r *kmsapi.EncryptResponse, e fault.Edit, kekID func(int) string) {
	switch e.Field {
	case fault.FieldKeyID:
		r.KeyId = falseKeyID(r.KeyId, e, kekID)
	case fault.FieldCiphertext:
		r.Ciphertext = []byte(pad(string(r.Ciphertext), e.PadTo))
	case fault.FieldAnnotation:
		if r.Annotations == nil {
			r.Annotations = map[string][]byte{}
		}
		r.Annotations[e.Annotation] = []byte(e.Value) // the response is this call's own
	}
}

// falseKeyID keeps the honest one where the wanted version was never seen: there is nothing to reuse yet.
func falseKeyID(honest string, e fault.Edit, kekID func(int) string) string {
	switch {
	case e.PadTo > 0:
		return pad(honest, e.PadTo)
	case e.KEKVersion == 0:
		return e.Value
	}
	if id := kekID(e.KEKVersion); id != "" {
		return id
	}
	return honest
}

func pad(s string, size int) string {
	if len(s) >= size {
		return s[:size]
	}
	return s + strings.Repeat("x", size-len(s))
}

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
