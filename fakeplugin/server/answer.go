package server

import (
	"cmp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

// falsify applies edits to an honest response. An edit of a field that the response does not have does nothing.
func (s *Server) falsify(resp any, edits []fault.Edit) {
	for _, e := range edits {
		switch r := resp.(type) {
		case *kmsapi.StatusResponse:
			s.falsifyStatus(r, e)
		case *kmsapi.EncryptResponse:
			s.falsifyEncrypt(r, e)
		}
	}
}

func (s *Server) falsifyStatus(r *kmsapi.StatusResponse, e fault.Edit) {
	switch e.Field {
	case fault.FieldHealthz:
		r.Healthz = e.Value
	case fault.FieldVersion:
		r.Version = e.Value
	case fault.FieldKeyID:
		r.KeyId = s.falseKeyID(r.KeyId, e)
	}
}

func (s *Server) falsifyEncrypt(r *kmsapi.EncryptResponse, e fault.Edit) {
	switch e.Field {
	case fault.FieldKeyID:
		r.KeyId = s.falseKeyID(r.KeyId, e)
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
func (s *Server) falseKeyID(honest string, e fault.Edit) string {
	switch {
	case e.PadTo > 0:
		return pad(honest, e.PadTo)
	case e.KEKVersion == 0:
		return e.Value
	}
	return cmp.Or(s.o.Plugin.KeyID(s.o.Plugin.View().KEK(e.KEKVersion)), honest)
}

func pad(s string, size int) string {
	if len(s) >= size {
		return s[:size]
	}
	return s + strings.Repeat("x", size-len(s))
}

type answer struct {
	resp    any
	err     error
	outcome journal.Outcome
}

// conclude is what a plan makes of the honest answer, after its holds and where the connection lives.
func (s *Server) conclude(plan fault.Plan, honest func() (any, error)) answer {
	switch {
	case plan.Error != nil:
		return answer{err: status.Error(plan.Error.Code, plan.Error.Text), outcome: journal.Failed}
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
	s.falsify(resp, plan.Edits)
	return answer{resp: resp, outcome: journal.Answered}
}

// noMessage makes gRPC send the status OK without a message.
type noMessage struct{}

func (noMessage) Error() string { return "no message" }

// GRPCStatus is what gRPC asks an error for.
func (noMessage) GRPCStatus() *status.Status { return status.New(codes.OK, "") }
