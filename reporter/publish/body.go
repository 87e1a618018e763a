package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// object is an apply configuration: it holds what this reporter owns and nothing else.
type object struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Status     status   `json:"status"`
}

type metadata struct {
	Name string `json:"name"`
}

type status struct {
	Conditions       []condition       `json:"conditions,omitempty"`
	EncryptionStatus *encryptionStatus `json:"encryptionStatus,omitempty"`
	OAuthAPIServer   *oauthAPIServer   `json:"oauthAPIServer,omitempty"`
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

type encryptionStatus struct {
	HealthReports []contract.TypedReport `json:"healthReports"`
}

// oauthAPIServer is where an Authentication keeps what other operators have at the top of their status.
type oauthAPIServer struct {
	EncryptionStatus *encryptionStatus `json:"encryptionStatus"`
}

// Body is the apply that carries out a write in a form. ok is false while the transition must be read from the CR first.
func Body(operator Operator, form Form, write core.Action, t *Transition) (body []byte, ok bool, err error) {
	if form == HealthReports {
		body, err = HealthReportsBody(operator, write.Report, write.LastKEKID)
		return body, true, err
	}
	since, known := t.Known()
	if !known {
		return nil, false, nil
	}
	body, err = ConditionsBody(operator, write.Report, since)
	return body, true, err
}

// ConditionsBody is the apply that carries report as a condition. since is its lastTransitionTime, in whole seconds.
func ConditionsBody(operator Operator, report contract.Report, since time.Time) ([]byte, error) {
	message, err := contract.EncodeMessage(report.Entries)
	if err != nil {
		return nil, err
	}
	return body(operator, status{Conditions: []condition{{
		Type:               contract.ConditionType(report.Node),
		Status:             contract.ReporterConditionStatus,
		Reason:             contract.ReporterConditionReason,
		Message:            message,
		LastTransitionTime: since.UTC().Format(time.RFC3339),
	}}})
}

// HealthReportsBody is the apply that carries report in the typed form. lastKEKID is core.Action.LastKEKID.
func HealthReportsBody(operator Operator, report contract.Report, lastKEKID map[string]string) ([]byte, error) {
	items, err := report.Typed(lastKEKID)
	if err != nil {
		return nil, err
	}
	list := &encryptionStatus{HealthReports: items}
	if operator == Authentication {
		return body(operator, status{OAuthAPIServer: &oauthAPIServer{EncryptionStatus: list}})
	}
	return body(operator, status{EncryptionStatus: list})
}

func body(operator Operator, s status) ([]byte, error) {
	kind, err := operator.kind()
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(object{APIVersion: apiVersion, Kind: kind, Metadata: metadata{Name: objectName}, Status: s})
	if err != nil {
		return nil, fmt.Errorf("encode the apply to %s: %w", kind, err)
	}
	return yamlSafe(b), nil
}

// yamlSafe escapes, in a JSON document, the characters that JSON allows as they are and YAML does not. The API server
// reads an apply as YAML, and one DEL or byte order mark in the key_id of a hostile plugin would make it reject the
// whole apply. They can only stand inside strings, where \uXXXX means the same to both.
func yamlSafe(json []byte) []byte {
	if !bytes.ContainsFunc(json, func(r rune) bool { return r >= 0x7f }) {
		return json
	}
	var b bytes.Buffer
	for i := 0; i < len(json); {
		r, size := utf8.DecodeRune(json[i:])
		if yamlForbids(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.Write(json[i : i+size])
		}
		i += size
	}
	return b.Bytes()
}

// yamlForbids follows YAML 1.2, 5.1 "Character Set", for what is left after encoding/json has escaped C0 controls,
// U+2028 and U+2029; U+0085 is allowed there but read as a line break.
func yamlForbids(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
}
