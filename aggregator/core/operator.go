package core

import (
	"fmt"

	"github.com/kmsharness/kmsharness/contract"
)

// Operator is where the reports of one kind of API server stand.
type Operator struct {
	// Name is the value of --operator.
	Name string
	// Resource and Kind of the CR in operator.openshift.io/v1; the object is always "cluster".
	Resource string
	Kind     string
	// ClusterOperator is the name of the config.openshift.io/v1 object that shows the union.
	ClusterOperator string
	// TypedPath leads to the typed reports on the CR.
	TypedPath []string
}

// Group, version and object name of every operator CR.
const (
	OperatorGroup   = "operator.openshift.io"
	OperatorVersion = "v1"
	OperatorObject  = "cluster"
)

// Group and version of a ClusterOperator and of the encryption configuration.
const (
	ConfigGroup   = "config.openshift.io"
	ConfigVersion = "v1"
)

// healthReports is the name of the typed list, under one encryptionStatus or another.
const (
	encryptionStatus = "encryptionStatus"
	healthReports    = "healthReports"
)

// Operators are the three owners of API servers, in the order in which they are shown.
func Operators() []Operator {
	typed := []string{"status", encryptionStatus, healthReports}
	oauth := []string{"status", "oauthAPIServer", encryptionStatus, healthReports}
	return []Operator{
		{"kubeapiserver", "kubeapiservers", "KubeAPIServer", "kube-apiserver", typed},
		{"openshiftapiserver", "openshiftapiservers", "OpenShiftAPIServer", "openshift-apiserver", typed},
		{"authentication", "authentications", "Authentication", "authentication", oauth},
	}
}

// OperatorByName finds the operator that a flag names.
func OperatorByName(name string) (Operator, error) {
	for _, o := range Operators() {
		if o.Name == name {
			return o, nil
		}
	}
	return Operator{}, fmt.Errorf("operator %q: expected kubeapiserver, openshiftapiserver or authentication", name)
}

// available is KMSPluginsAvailable: False when some expected node's write-key plugin freshly fails, Unknown when
// some node should have been heard of and was not, else True. A node that still awaits its first report takes
// nothing away: absence is "not yet observed".
func available(nodes []node) Condition {
	var unusable, unknown []line
	for _, n := range nodes {
		switch e, ok := n.writeKey(); {
		case ok && e.freshness == contract.Fresh && e.Status != contract.StatusHealthy:
			unusable = append(unusable, line{key: plugin(n.name, e.KeyID), text: "write key is " + e.outcome()})
		case n.overdue || n.reported && !n.sound():
			unknown = append(unknown, line{key: safeName(n.name), text: "no fresh, well-formed report"})
		}
	}
	c := Condition{Type: contract.ConditionAvailable, Status: True, Reason: contract.ReasonAsExpected}
	switch {
	case len(unusable) > 0:
		c.Status, c.Reason, c.Message = False, contract.ReasonNoUsableWriteKey, message(append(unusable, ranked(unknown, 1)...))
	case len(unknown) > 0:
		c.Status, c.Reason, c.Message = Unknown, contract.ReasonWriteKeyUnknown, message(unknown)
	default:
		c.Message = "no write-key plugin is known to be unusable"
	}
	return c
}

func ranked(lines []line, r rank) []line {
	for i := range lines {
		lines[i].rank = r
	}
	return lines
}
