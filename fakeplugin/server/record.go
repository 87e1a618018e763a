package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

// record writes a call into the journal, before its answer goes out.
func (s *Server) record(m fault.Method, req any, plan fault.Plan, a answer, began time.Time, unreadable bool) {
	ended := s.clock.Now()
	c := journal.Call{
		Node: s.o.Node, KeyID: s.o.KeyID, Method: string(m),
		Began: began.UTC(), Ended: ended.UTC(), LatencyMS: float64(ended.Sub(began).Microseconds()) / 1000,
		NoticedKEKID: s.o.Plugin.KeyID(s.o.Plugin.View().Noticed), Faults: plan.Faults,
	}
	a.describe(&c, req, unreadable)
	s.o.Journal.Append(c)
	s.logCall(c)
}

// describe puts what was asked and how it ended into a line of the journal.
func (a answer) describe(c *journal.Call, req any, unreadable bool) {
	c.Outcome, c.Unreadable = a.outcome, unreadable
	c.Code, c.Detail = a.seen(unreadable)
	if c.Code != codes.OK.String() && (a.outcome == journal.Answered || a.outcome == journal.Nil) {
		c.Outcome = journal.Failed
	}
	describeRequest(c, req)
	describeResponse(c, a)
}

// seen is the code and text that the caller gets, from us or from its own library.
func (a answer) seen(unreadable bool) (code, detail string) {
	switch {
	case unreadable:
		return codes.Internal.String(), "the response holds invalid UTF-8"
	case errors.Is(a.err, noMessage{}):
		return codes.Internal.String(), "status OK without a message"
	case a.outcome == journal.Reset:
		return codes.Unavailable.String(), status.Convert(errBroken).Message()
	case a.err != nil:
		st := status.Convert(a.err)
		return st.Code().String(), journal.Text(st.Message())
	}
	return codes.OK.String(), ""
}

func describeRequest(c *journal.Call, req any) {
	switch r := req.(type) {
	case *kmsapi.EncryptRequest:
		c.UID = journal.Text(r.Uid)
	case *kmsapi.DecryptRequest:
		c.UID, c.RequestKEKID, c.DEKSource = journal.Text(r.Uid), journal.Text(r.KeyId), journal.Digest(r.Ciphertext)
	}
}

func describeResponse(c *journal.Call, a answer) {
	switch r := a.resp.(type) {
	case *kmsapi.StatusResponse:
		c.Version, c.Healthz, c.HealthzBytes = journal.Text(r.Version), journal.Text(r.Healthz), len(r.Healthz)
		c.KEKID, c.KEKIDBytes = journal.Text(r.KeyId), len(r.KeyId)
	case *kmsapi.EncryptResponse:
		c.KEKID, c.KEKIDBytes = journal.Text(r.KeyId), len(r.KeyId)
		c.DEKSource = journal.Digest(r.Ciphertext)
	}
}

// logCall makes a call findable by its uid in the log, unless the journal's file has it already: then the log has it when
// debugging only. So has it of Status, which is polled.
func (s *Server) logCall(c journal.Call) {
	level := slog.LevelInfo
	if c.Method == string(fault.Status) || s.o.Journal.Written() {
		level = slog.LevelDebug
	}
	ctx := context.Background()
	if !s.o.Log.Enabled(ctx, level) {
		return
	}
	s.o.Log.LogAttrs(ctx, level, c.Method, slog.String("uid", c.UID), slog.String("code", c.Code), slog.String("kekID", c.NoticedKEKID))
}
