package requests

import (
	"encoding/json"
	"time"
)

// event is the part of an audit.k8s.io/v1 Event that harness/record/audit reads. The kind comes first: it finds the beginning of an
// event by it.
type event struct {
	Kind           string          `json:"kind"`
	APIVersion     string          `json:"apiVersion"`
	AuditID        string          `json:"auditID"`
	Stage          string          `json:"stage"`
	RequestURI     string          `json:"requestURI"`
	Verb           string          `json:"verb"`
	User           user            `json:"user"`
	UserAgent      string          `json:"userAgent,omitempty"`
	ObjectRef      *Object         `json:"objectRef,omitempty"`
	ResponseStatus *status         `json:"responseStatus,omitempty"`
	RequestObject  json.RawMessage `json:"requestObject,omitempty"`
	ResponseObject *object         `json:"responseObject,omitempty"`
	Received       time.Time       `json:"requestReceivedTimestamp"`
	Reached        time.Time       `json:"stageTimestamp"`
}

type user struct {
	Username string `json:"username"`
}

// status is the part of a metav1.Status that is logged.
type status struct {
	Code    int             `json:"code"`
	Message string          `json:"message,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

type object struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
}

// Stages of an audit event.
const (
	stageReceived = "RequestReceived"
	stageStarted  = "ResponseStarted"
	stageComplete = "ResponseComplete"
)
