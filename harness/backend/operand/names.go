package operand

import (
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

// Component is the API server that an operator under test manages, as the labels and names of its objects have it.
const Component = string(staticpods.Component)

// Namespaces that an operator finds.
const (
	// Namespace has the pods of the API server and the Secrets of its revisions.
	Namespace = staticpods.Namespace
	// OperatorNamespace is the operator's own.
	OperatorNamespace = staticpods.OperatorNamespace
	// ManagedNamespace has the keys and the configuration that the operator wants.
	ManagedNamespace = revision.Namespace
)

const (
	// cr is the name of the operator's CR.
	cr = staticpods.CR
	// Annotations of a key's Secret.
	modeAnnotation = "encryption.apiserver.operator.openshift.io/mode"
	// Annotations of a rotation of the KEK (openshift/enhancements#2041).
	convergedKEKAnnotation = "encryption.apiserver.operator.openshift.io/remote-key-converged-id"
	migratedKEKAnnotation  = "encryption.apiserver.operator.openshift.io/migrated-remote-key-id"
	// KeySelector selects the keys of the API server. Other Secrets may have the label: keyPrefix begins the names of keys.
	KeySelector = revision.ComponentLabel + "=" + Component
	keyPrefix   = "encryption-key-" + Component + "-"
	// fieldManager of what the installer and the migrator write.
	fieldManager = "kmsharness-operand"
)

// revisionNamed is the number of the revision whose Secret has a name.
func revisionNamed(name string) (number int, ok bool) {
	text, ok := strings.CutPrefix(name, staticpods.ConfigKey+"-")
	number, err := strconv.Atoi(text)
	return number, ok && err == nil
}

// PodName is the name of a node's pod.
func PodName(node string) string { return "kube-apiserver-" + node }
