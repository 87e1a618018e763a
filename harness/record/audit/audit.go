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
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// event is the part of audit.k8s.io/v1 Event that is used here.
type event struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       user   `json:"user"`
	As         *user  `json:"impersonatedUser"`
	UserAgent  string `json:"userAgent"`
	ObjectRef  struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Reason  string `json:"reason"`
		Details struct {
			Causes []history.Cause `json:"causes"`
		} `json:"details"`
	} `json:"responseStatus"`
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	} `json:"responseObject"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Reached  time.Time `json:"stageTimestamp"`
}

type user struct {
	Username string              `json:"username"`
	Extra    map[string][]string `json:"extra"`
}

// node is the node that the user's token names.
func (u user) node() string {
	if names := u.Extra[contract.NodeNameExtra]; len(names) == 1 {
		return names[0]
	}
	return ""
}

// Stages of an audit event.
const (
	stageReceived = "RequestReceived"
	stageStarted  = "ResponseStarted" // only of long-running requests
	stageComplete = "ResponseComplete"
	stagePanic    = "Panic"
)

// Decode reads one line of the audit log of the API server on node. A watch has ended when its response starts,
// everything else when it is complete. A request that was received has no outcome yet: its code is 0 and its time of
// completion that of its arrival. Lines of other stages give nil.
func Decode(node string, line []byte) (r *history.Request, ended bool, err error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, false, fmt.Errorf("audit log of %s: %w", node, err)
	}
	if e.AuditID == "" || e.Verb == "" {
		return nil, false, fmt.Errorf("audit log of %s: not an audit event: auditID or verb is missing", node)
	}
	if ended = e.ends(); !ended && e.Stage != stageReceived {
		return nil, false, nil
	}
	return e.request(node), ended, nil
}

func (e *event) ends() bool {
	if e.Verb == "watch" {
		return e.Stage == stageStarted || e.Stage == stageComplete && e.ResponseStatus.Code >= 400
	}
	return e.Stage == stageComplete || e.Stage == stagePanic
}

func (e *event) request(node string) *history.Request {
	r := &history.Request{
		AuditID: e.AuditID, APIServer: node, User: e.User.Username, TokenNode: e.User.node(), UserAgent: e.UserAgent, Verb: e.Verb,
		Resource: e.resource(), Subresource: e.ObjectRef.Subresource, Namespace: e.ObjectRef.Namespace,
		Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code, Received: e.Received, Completed: e.Reached,
		ResourceVersion: e.ResponseObject.Metadata.ResourceVersion,
	}
	if e.As != nil {
		r.User, r.TokenNode = e.As.Username, e.As.node()
	}
	if r.Code >= 400 || r.Code == 0 {
		r.Message, r.Reason, r.Causes = e.ResponseStatus.Message, e.ResponseStatus.Reason, e.ResponseStatus.Details.Causes
	}
	if Writes(e.Verb) {
		r.Body = e.RequestObject
		e.options(r)
	}
	return r
}

// resource is "plural.group"; a request that is not for a resource is named by its path.
func (e *event) resource() string {
	if e.ObjectRef.Resource == "" {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return path
	}
	if e.ObjectRef.APIGroup == "" {
		return e.ObjectRef.Resource
	}
	return e.ObjectRef.Resource + "." + e.ObjectRef.APIGroup
}

// options reads field manager and force from the request's query, and tells the kinds of patch apart.
func (e *event) options(r *history.Request) {
	u, err := url.ParseRequestURI(e.RequestURI)
	if err != nil {
		return
	}
	query := u.Query()
	r.FieldManager = query.Get("fieldManager")
	force := strings.ToLower(query.Get("force"))
	r.Force = query.Has("force") && force != "false" && force != "0" // as an API server reads it
	if e.Verb == "patch" {
		r.ContentType = contentType(e.RequestObject, query.Has("fieldManager"))
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

// Writes says whether verb changes something.
func Writes(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}
