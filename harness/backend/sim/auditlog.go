package sim

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/audit"
)

// note is the line that an audit log gets of a request, without its outcome; nil for one that does not matter.
func (s *server) note(r *request) *history.Request {
	writes := audit.Writes(r.verb)
	if !audit.SystemUnderTest(r.user) && !(writes && s.w.observed(r.key.Resource)) {
		return nil
	}
	s.w.requests++
	e := &history.Request{AuditID: "request-" + strconv.Itoa(s.w.requests), APIServer: s.node.name, User: r.user, TokenNode: r.tokenNode, UserAgent: r.agent, ByHarness: r.byHarness, ReportOf: r.relayed, Verb: r.verb,
		Resource: s.w.resourceName(r.key.Resource), Subresource: r.subresource, Namespace: r.key.Namespace, Name: r.key.Name, Received: s.w.k.Now()}
	if writes {
		e.FieldManager, e.Force, e.ContentType = r.manager, r.force, r.contentType
		if s.w.observed(r.key.Resource) {
			e.Body = json.RawMessage(r.body)
			s.open = append(s.open, e)
		}
	}
	return e
}

// finish answers a request, and logs how it ended.
func (s *server) finish(e *history.Request, rep reply, answer func(reply)) {
	if e != nil {
		if len(s.open) > 0 {
			s.open = slices.DeleteFunc(s.open, func(o *history.Request) bool { return o == e })
		}
		e.Code, e.Completed = rep.code, s.w.k.Now()
		if rep.version != nil && audit.Writes(e.Verb) && e.Body != nil {
			e.ResourceVersion = rep.version.ResourceVersion()
		}
		if rep.code >= http.StatusBadRequest {
			e.Message, e.Reason, e.Causes = rep.text, rep.reason, rep.causes
		}
		s.w.record(s.auditLog, e)
	}
	answer(rep)
}

// Who writes and reads the objects of scenarios, and where they are.
const (
	adminUser     = "kmsharness-admin"
	dataNamespace = "default"
)

// traced is done, told through the audit log: the request for an object that may be an envelope operation. A server that is down, or
// goes down with it, logs nothing.
func (s *server) traced(verb, name string, ok int, done func(error)) func(error) {
	if s.w.apiServer != "" {
		return done // nobody reads the audit log of an aggregated API server
	}
	s.w.requests++
	e := &history.Request{AuditID: "request-" + strconv.Itoa(s.w.requests), APIServer: s.node.name, User: adminUser, Verb: verb,
		Resource: "secrets", Namespace: dataNamespace, Name: name, Code: ok, Received: s.w.k.Now()}
	return func(err error) {
		if s.runs() {
			if err != nil {
				rep := replyOf(nil, err)
				e.Code, e.Message, e.Reason, e.Causes = rep.code, rep.text, rep.reason, rep.causes
			}
			e.Completed = s.w.k.Now()
			s.w.record(s.auditLog, e)
		}
		done(err)
	}
}
