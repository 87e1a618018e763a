package core

import "fmt"

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
