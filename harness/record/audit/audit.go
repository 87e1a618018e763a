// Package audit converts the audit log of a kube-apiserver to requests of the history.
//
// The API server writes the audit log, so a system under test cannot hide a request from it. The package decodes a line
// and selects the relevant lines. The audit policy is in harness/controlplane, the reading of the file in
// harness/record/tail.
package audit

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	audit "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// nodeOf is the node that a user's token names.
func nodeOf(u authentication.UserInfo) string {
	if names := u.Extra[contract.NodeNameExtra]; len(names) == 1 {
		return names[0]
	}
	return ""
}

// Decode reads one line of the audit log of the API server on node. A watch has ended when its response starts,
// everything else when it is complete. A request that was received has no outcome yet: its code is 0 and its time of
// completion that of its arrival. Lines of other stages give nil.
func Decode(node string, line []byte) (r *history.Request, ended bool, err error) {
	var e audit.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, false, fmt.Errorf("audit log of %s: %w", node, err)
	}
	if e.AuditID == "" || e.Verb == "" {
		return nil, false, fmt.Errorf("audit log of %s: not an audit event: auditID or verb is missing", node)
	}
	if e.ResponseStatus == nil {
		e.ResponseStatus = &metav1.Status{}
	}
	if ended = ends(&e); !ended && e.Stage != audit.StageRequestReceived {
		return nil, false, nil
	}
	return request(&e, node), ended, nil
}

func ends(e *audit.Event) bool {
	if e.Verb == "watch" {
		return e.Stage == audit.StageResponseStarted || e.Stage == audit.StageResponseComplete && e.ResponseStatus.Code >= 400
	}
	return e.Stage == audit.StageResponseComplete || e.Stage == audit.StagePanic
}

func request(e *audit.Event, node string) *history.Request {
	r := &history.Request{
		AuditID: string(e.AuditID), APIServer: node, User: e.User.Username, TokenNode: nodeOf(e.User), UserAgent: e.UserAgent, Verb: e.Verb,
		Code: int(e.ResponseStatus.Code), Received: e.RequestReceivedTimestamp.UTC(), Completed: e.StageTimestamp.UTC(),
	}
	if o := e.ObjectRef; o != nil {
		r.Resource, r.Subresource, r.Namespace, r.Name = schema.GroupResource{Group: o.APIGroup, Resource: o.Resource}.String(), o.Subresource, o.Namespace, o.Name
	}
	if r.Resource == "" { // a request that is not for a resource is named by its path
		r.Resource, _, _ = strings.Cut(e.RequestURI, "?")
	}
	if e.ImpersonatedUser != nil {
		r.User, r.TokenNode = e.ImpersonatedUser.Username, nodeOf(*e.ImpersonatedUser)
	}
	if e.ResponseObject != nil {
		var object struct { // PartialObjectMetadata would read managedFields, of every answer
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		}
		if json.Unmarshal(e.ResponseObject.Raw, &object) == nil {
			r.ResourceVersion = object.Metadata.ResourceVersion
		}
	}
	if r.Code >= 400 || r.Code == 0 {
		r.Message, r.Reason = e.ResponseStatus.Message, string(e.ResponseStatus.Reason)
		if details := e.ResponseStatus.Details; details != nil {
			for _, c := range details.Causes {
				r.Causes = append(r.Causes, history.Cause{Reason: string(c.Type), Message: c.Message, Field: c.Field})
			}
		}
	}
	if Writes(e.Verb) {
		if e.RequestObject != nil {
			r.Body = e.RequestObject.Raw
		}
		options(e, r)
	}
	return r
}

// options reads field manager and force from the request's query, and tells the kinds of patch apart.
func options(e *audit.Event, r *history.Request) {
	u, err := url.ParseRequestURI(e.RequestURI)
	if err != nil {
		return
	}
	query := u.Query()
	r.FieldManager = query.Get("fieldManager")
	force := strings.ToLower(query.Get("force"))
	r.Force = query.Has("force") && force != "false" && force != "0" // as an API server reads it
	if e.Verb == "patch" {
		r.ContentType = contentType(r.Body, query.Has("fieldManager"))
	}
}

// Content types of a patch.
const (
	ContentTypeApply     = "application/apply-patch+yaml"
	ContentTypeJSONPatch = "application/json-patch+json"
	ContentTypeMerge     = "application/merge-patch+json"
)

// contentType follows from the body, because the audit log does not keep the header: a JSON patch is a list, an
// apply names its apiVersion and kind and must name a field manager, what is left merges.
func contentType(body json.RawMessage, named bool) string {
	if len(body) == 0 {
		return ""
	}
	if strings.HasPrefix(strings.TrimSpace(string(body)), "[") {
		return ContentTypeJSONPatch
	}
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if json.Unmarshal(body, &object) == nil && named && object.APIVersion != "" && object.Kind != "" {
		return ContentTypeApply
	}
	return ContentTypeMerge
}

func Writes(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}
