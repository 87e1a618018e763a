package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

const (
	stageReceived = auditv1.StageRequestReceived
	stageStarted  = auditv1.StageResponseStarted
	stageComplete = auditv1.StageResponseComplete
)

// auditLog writes lines one after another.
type auditLog struct {
	mu  sync.Mutex
	out io.Writer
}

// auditing returns what the policy demands for a request. Without a policy everything is logged with its bodies, since
// the checker needs them.
func (s *Server) auditing(q *Request) audit.RequestAuditConfig {
	switch {
	case s.Audit == nil:
		return audit.RequestAuditConfig{Level: internal.LevelNone}
	case s.AuditPolicy == nil:
		return audit.RequestAuditConfig{Level: internal.LevelRequestResponse, OmitManagedFields: true}
	}
	return s.AuditPolicy.EvaluatePolicyRule(authorizer.AttributesRecord{User: q.User, Verb: q.Verb, Namespace: q.Namespace, APIGroup: q.APIGroup, APIVersion: q.APIVersion,
		Resource: q.Resource, Subresource: q.Subresource, Name: q.Name, ResourceRequest: q.IsResourceRequest, Path: q.Path})
}

// audit writes a line about a request: refused is why it was refused, and made what another one has made.
func (s *Server) audit(q *Request, stage auditv1.Stage, refused *metav1.Status, made *store.Version) {
	level := q.auditing.Level
	if level == internal.LevelNone || level == "" || slices.Contains(q.auditing.OmitStages, internal.Stage(stage)) {
		return
	}
	e := auditv1.Event{
		TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: "audit.k8s.io/v1"}, Level: auditv1.Level(level),
		AuditID: q.auditID(), Stage: stage, RequestURI: timeless(q.HTTP.URL), Verb: q.Verb, User: userInfo(q.User), UserAgent: q.HTTP.UserAgent(),
		RequestReceivedTimestamp: metav1.NewMicroTime(q.received), StageTimestamp: metav1.NewMicroTime(time.Now()),
	}
	if q.IsResourceRequest {
		e.ObjectRef = &auditv1.ObjectReference{Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name, APIGroup: q.APIGroup, APIVersion: q.APIVersion}
	}
	if stage != stageReceived {
		e.ResponseStatus = &metav1.Status{Code: int32(q.code())}
		if refused != nil {
			e.ResponseStatus = refused
		}
		if level == internal.LevelRequest || level == internal.LevelRequestResponse {
			e.RequestObject = raw(q.Body)
		}
		if level == internal.LevelRequestResponse && made != nil {
			text, _ := s.Cluster.text(made, !q.auditing.OmitManagedFields) // of what was encoded already
			e.ResponseObject = raw(text)
		}
	}
	line, err := json.Marshal(e)
	if err != nil {
		line = fmt.Appendf(nil, `{"auditID":%q,"error":%q}`, e.AuditID, err.Error())
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	_, _ = s.log.out.Write(append(line, '\n')) // as kube-apiserver, which goes on without
}

// raw is JSON as it came; an apply in YAML is left out by its caller.
func raw(text []byte) *runtime.Unknown {
	if len(text) == 0 {
		return nil
	}
	if !json.Valid(text) {
		u, err := object(text)
		if err != nil {
			return nil
		}
		if text, err = json.Marshal(u.Object); err != nil {
			return nil
		}
	}
	return &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}
}

// audited has the Audit-ID of the client in its context, as kube-apiserver's filter puts it there.
func audited(r *http.Request) *http.Request {
	id := r.Header.Get(auditv1.HeaderAuditID)
	if id == "" {
		return r
	}
	ctx := audit.WithAuditContext(r.Context())
	audit.WithAuditID(ctx, types.UID(id))
	return r.WithContext(ctx)
}

// auditID is the client's own (header Audit-ID), or has the form of a version 4 UUID. It depends on the request alone,
// so that logs of two runs with one seed are equal.
func (q *Request) auditID() types.UID {
	if own := q.HTTP.Header.Get(auditv1.HeaderAuditID); own != "" {
		return types.UID(own)
	}
	a, b := uint64(q.id.Number(1)), uint64(q.id.Number(2))
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff))
}

func userInfo(u user.Info) authentication.UserInfo {
	out := authentication.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for k, v := range u.GetExtra() {
		if out.Extra == nil {
			out.Extra = map[string]authentication.ExtraValue{}
		}
		out.Extra[k] = v
	}
	return out
}
