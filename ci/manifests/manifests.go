// Package manifests holds what a cluster needs besides the programs: the identities' permissions, the admission
// policy that narrows a reporter to its own entry, and the flow schemas that bound what reporters occupy of an API server. The names come from package contract, so they cannot drift.
package manifests

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kmsharness/kmsharness/contract"
)

//go:embed *.yaml
var files embed.FS

// Namespace has the aggregator's lease and the reporters' service account.
const Namespace = contract.Namespace

// Options say for which cluster to render.
type Options struct {
	// Operator whose reports are meant: kubeapiserver (also when empty), openshiftapiserver or authentication.
	Operator string
	// PodNamespace is set when the API servers are Deployments in that namespace: the aggregator then reads the pods
	// there instead of Nodes. The namespace has to exist.
	PodNamespace string
	// Namespace of the aggregator's lease, which then has to exist; empty: Namespace, which is one of the objects.
	Namespace string
	// Streaming is for reporters that stream to the aggregator: they need no rights, and the aggregator writes the EncryptionHealth.
	Streaming bool
	// Suffix of the names of all other objects, where several installations must not meet. The service account has none: its name is in the contract.
	Suffix string
}

// operators are what differs from one operator to the next in the templates: the resource of its CR, its ClusterOperator, the field of status under which
// the typed reports are, and the field of status that holds encryptionStatus, empty for status itself.
var operators = map[string][4]string{
	"kubeapiserver":      {"kubeapiservers", "kube-apiserver", "encryptionStatus", ""},
	"openshiftapiserver": {"openshiftapiservers", "openshift-apiserver", "encryptionStatus", ""},
	"authentication":     {"authentications", "authentication", "oauthAPIServer", "oauthAPIServer"},
}

// Objects are the manifests in an order in which they can be created: the namespace comes first.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	names := []string{"namespace.yaml", "reporter-admission.yaml", "reporter-rbac.yaml", "aggregator-rbac.yaml", "flow-control.yaml"}
	if o.Streaming {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "reporter-rbac.yaml" })
	}
	if o.Namespace != "" {
		names = names[1:]
	}
	for _, name := range names {
		text, err := Render(name, o)
		if err != nil {
			return nil, err
		}
		objects, err := Decode(text)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		out = append(out, objects...)
	}
	for _, object := range out {
		if kind := object.GetKind(); kind != "Namespace" && kind != "ServiceAccount" { // each installation has its own namespace
			rename(object, o.Suffix)
		}
	}
	return out, nil
}

// EncryptionOperator is what encryption-operator needs in a cluster that has its namespaces.
func EncryptionOperator() ([]*unstructured.Unstructured, error) {
	text, err := files.ReadFile("operator-rbac.yaml")
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// rename adds a suffix to the name of an object, and to the names by which bindings refer to others.
func rename(o *unstructured.Unstructured, suffix string) {
	if suffix == "" {
		return
	}
	o.SetName(o.GetName() + suffix)
	for _, reference := range [][]string{{"roleRef", "name"}, {"spec", "policyName"}, {"spec", "priorityLevelConfiguration", "name"}} {
		if name, found, err := unstructured.NestedString(o.Object, reference...); found && err == nil {
			_ = unstructured.SetNestedField(o.Object, name+suffix, reference...) // its parent is an object: a string was found in it
		}
	}
}

// Render is the YAML of one file.
func Render(name string, o Options) ([]byte, error) {
	o.Operator, o.Namespace = cmp.Or(o.Operator, "kubeapiserver"), cmp.Or(o.Namespace, Namespace)
	op, ok := operators[o.Operator]
	if !ok {
		return nil, fmt.Errorf("operator %q: expected kubeapiserver, openshiftapiserver or authentication", o.Operator)
	}
	t, err := template.New(name).Option("missingkey=error").ParseFS(files, name)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	health := "" // unless reporters stream
	if o.Streaming {
		health = contract.HealthResource
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{
		"Resource": op[0], "ClusterOperator": op[1], "TypedRoot": op[2], "TypedParent": op[3],
		"Namespace": o.Namespace, "PodNamespace": o.PodNamespace,
		"ReporterGroup":           contract.ReporterGroup,
		"ReporterIdentityPrefix":  contract.ReporterIdentityPrefix,
		"ReporterConditionPrefix": contract.ReporterConditionPrefix,
		"ReporterServiceAccount":  contract.ReporterServiceAccount,
		"ReporterAccount":         contract.ReporterAccount(o.Namespace), // the user name of the service account
		"NodeNameExtra":           contract.NodeNameExtra,
		"TokenNamespace":          contract.TokenNamespace,
		"TokenGroup":              contract.TokenGroup,
		"TokenPrefix":             contract.ReporterToken(""), // of the user names of its accounts
		"AggregatorIdentity":      contract.AggregatorIdentity,
		"MaxEntries":              contract.MaxEntries,       // plugins of a node
		"MaxReportBytes":          contract.MaxReportBytes,   // texts of a node's report
		"MaxFieldManagers":        contract.MaxFieldManagers, // owners of a node's entry
		"Health":                  health, "HealthGroup": contract.HealthGroup, "OperatorName": o.Operator,
		"ReporterFlows": contract.ReporterFlows, "EndpointFlows": contract.EndpointFlows,
		"Shared": o.Suffix != "", // other programs use the cluster, too
	})
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// Decode reads the objects of a YAML file. Empty documents are skipped.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	var out []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("parse: %w", err)
		case len(o.Object) > 0:
			out = append(out, o)
		}
	}
}
