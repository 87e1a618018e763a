package contract

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// EncryptionHealth is a cluster-scoped resource of this project (ci/manifests/encryptionhealth-crd.yaml). With reporters that stream, the aggregator shows
// in its status which of them it hears; docs/contract.md, "Streaming". There is one object for each operator, which has the operator's name.
const (
	HealthGroup    = "kmsharness.dev"
	HealthVersion  = "v1alpha1"
	HealthKind     = "EncryptionHealth"
	HealthResource = "encryptionhealths"
)

// HealthStatus is the state of the streams of reporters.
type HealthStatus struct {
	// ObservedGeneration is the generation of the spec that the lists below were made for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions has one of type Ready: True if NotReadyNodes is empty, else False. It has none while KMS is not an active encryption type.
	Conditions []HealthCondition `json:"conditions,omitempty"`
	// ReadyNodes and NotReadyNodes are the nodes that should report, sorted; each is in exactly one of them.
	ReadyNodes    []string `json:"readyNodes,omitempty"`
	NotReadyNodes []string `json:"notReadyNodes,omitempty"`
	// Replicas are the reporters of these nodes, sorted by node.
	Replicas []ReplicaHealth `json:"replicas,omitempty"`
}

// HealthReady is the type of the condition of an EncryptionHealth.
const HealthReady = "Ready"

// HealthCondition is a condition as the API conventions have it.
type HealthCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

// ReplicaHealth is the condition of one reporter.
type ReplicaHealth struct {
	NodeName string `json:"nodeName"`
	// Status is True if the last report on the present stream has healthy plugins only, False if not, and Unknown if there is no stream, or no report on it yet.
	Status string `json:"status"`
	// Reason is one of the Replica… constants.
	Reason string `json:"reason"`
	// Message names the plugins that are not healthy.
	Message string `json:"message,omitempty"`
	// ObservedGeneration is what the reporter sent with its last report.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastTransitionTime is when Status changed, in RFC 3339.
	LastTransitionTime string `json:"lastTransitionTime"`
}

// Validate says why the schema of the EncryptionHealth refuses r, apart from LastTransitionTime.
func (r ReplicaHealth) Validate() error {
	chars := func(field, text string, least, most int) error {
		if n := utf8.RuneCountInString(text); n < least || n > most {
			return fmt.Errorf("%s has %d characters, expected %d to %d", field, n, least, most)
		}
		return nil
	}
	err := errors.Join(chars("nodeName", r.NodeName, 1, 253), chars("reason", r.Reason, 1, 1024), chars("message", r.Message, 0, 32768))
	if r.Status != "True" && r.Status != "False" && r.Status != "Unknown" {
		err = errors.Join(err, fmt.Errorf("status is %q, expected True, False or Unknown", SafeText(r.Status, 64)))
	}
	if r.ObservedGeneration < 0 {
		err = errors.Join(err, fmt.Errorf("observedGeneration is %d, expected 0 or more", r.ObservedGeneration))
	}
	return err
}

// Reasons of a ReplicaHealth.
const (
	ReplicaDisconnected = "Disconnected" // no stream
	ReplicaConnected    = "Connected"    // a stream, and no report on it yet
	ReplicaHealthy      = "AsExpected"
	ReplicaUnhealthy    = "PluginNotHealthy"
)
