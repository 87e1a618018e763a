// Package record has the recorders of real backends, one in each sub-package. A recorder converts one source (an audit
// log, a plugin's journal, an API server's log, a watch) to events of the history, and does nothing else.
//
// A recorder is a pure conversion of one line or one object, and a thin edge that reads the source. Package tail is the
// edge for files. harness/controlplane and harness/backend/local start the programs that write these sources,
// harness/check judges their content.
package record

import (
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// Sink receives what a recorder saw; *history.Log is one.
type Sink interface {
	Record(at time.Time, source string, payload any)
}

// Status is what is observed of the status of an operator CR or a ClusterOperator.
type Status struct {
	Conditions       []history.Condition `json:"conditions"`
	EncryptionStatus encryptionStatus    `json:"encryptionStatus"`
	OAuthAPIServer   struct {
		EncryptionStatus encryptionStatus `json:"encryptionStatus"`
	} `json:"oauthAPIServer"`
}

type encryptionStatus struct {
	HealthReports []contract.TypedReport `json:"healthReports"`
}

// HealthReports are those of kube-apiserver or openshift-apiserver, and those of oauth-apiserver.
func (s Status) HealthReports() []contract.TypedReport {
	return slices.Concat(s.EncryptionStatus.HealthReports, s.OAuthAPIServer.EncryptionStatus.HealthReports)
}
