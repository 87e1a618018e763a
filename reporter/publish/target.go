package publish

import (
	"fmt"
	"strings"
)

// Operator names the operator whose CR carries the reports.
type Operator string

const (
	KubeAPIServer      Operator = "kubeapiserver"
	OpenShiftAPIServer Operator = "openshiftapiserver"
	Authentication     Operator = "authentication"
)

// Operators are all of them, in the order in which help texts show them.
func Operators() []Operator { return []Operator{KubeAPIServer, OpenShiftAPIServer, Authentication} }

// Form is the wire form of a report.
type Form string

const (
	Conditions    Form = "conditions"    // a condition whose message is the report
	HealthReports Form = "healthreports" // the typed list of github.com/openshift/api
)

func Forms() []Form { return []Form{Conditions, HealthReports} }

const (
	apiVersion = "operator.openshift.io/v1"
	objectName = "cluster" // every operator CR is a singleton of this name
)

// kind of the operator's CR; its resource is the lower-case plural.
func (o Operator) kind() (string, error) {
	switch o {
	case KubeAPIServer:
		return "KubeAPIServer", nil
	case OpenShiftAPIServer:
		return "OpenShiftAPIServer", nil
	case Authentication:
		return "Authentication", nil
	}
	return "", fmt.Errorf("operator %q: expected kubeapiserver, openshiftapiserver or authentication", o)
}

// path of the operator's CR on the API server.
func (o Operator) path() string {
	return "/apis/" + apiVersion + "/" + strings.ToLower(string(o)) + "s/" + objectName
}
