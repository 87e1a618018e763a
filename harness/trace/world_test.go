package trace_test

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/trace"
)

// story writes a history as its parties would have told it.
type story struct {
	log   *history.Log
	start time.Time
}

func tell() *story {
	s := &story{log: history.NewLog(nil), start: time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)}
	s.at(0, &history.Run{Schema: history.Schema, Scenario: "s", Backend: "b"})
	for _, node := range []string{"cp-1", "cp-2"} {
		s.at(0, &history.Process{Role: history.RoleAPIServer, Node: node, State: history.ProcessReady})
		s.at(0, &history.Process{Role: history.RolePlugin, Node: node, KeyID: "1", State: history.ProcessReady})
	}
	return s
}

func (s *story) at(d time.Duration, payload any) *story {
	s.log.Record(s.start.Add(d), "test", payload)
	return s
}

func (s *story) join(t *testing.T) *trace.Trace {
	t.Helper()
	s.at(time.Minute, &history.End{Complete: true})
	return trace.Join(s.log.Events())
}

func line(op, uid, node, object string) *history.Envelope {
	e := &history.Envelope{Hop: trace.APIServer, Op: op, UID: uid, Node: node, OK: true}
	if object != "" {
		e.Object = "/registry/" + object
		e.For = history.EnvelopeRequest{Verb: "get", Version: "v1", Resource: "secrets"}
	}
	return e
}

func (s *story) call(d time.Duration, method, uid, node, source string) *history.Call {
	return &history.Call{Node: node, KeyID: "1", Method: method, UID: uid, Began: s.start.Add(d), Ended: s.start.Add(d + time.Millisecond), Took: time.Millisecond,
		Outcome: history.CallOK, Code: "OK", KEKID: "kek-1", DEKSource: source}
}

func kms(op, uid, node string) *history.Envelope {
	return &history.Envelope{Hop: trace.RemoteKMS, Op: op, UID: uid, Node: node, KeyID: "1", KEKID: "kek-1", OK: true, Took: 400 * time.Microsecond}
}

// operation is one that everybody tells of.
func (s *story) operation(d time.Duration, op, uid, node, object, source string) *story {
	method := map[string]string{trace.Encrypt: "Encrypt", trace.Decrypt: "Decrypt"}[op]
	s.at(d, line(op, uid, node, object))
	s.at(d+700*time.Microsecond, kms(op, uid, node))
	return s.at(d+1100*time.Microsecond, s.call(d+100*time.Microsecond, method, uid, node, source))
}

func (s *story) request(d time.Duration, verb, node, object, id string) *story {
	return s.at(d+3*time.Millisecond, &history.Request{AuditID: id, APIServer: node, Verb: verb, Resource: "secrets", Namespace: "ns", Name: object, Code: 200,
		Received: s.start.Add(d), Completed: s.start.Add(d + 3*time.Millisecond)})
}
