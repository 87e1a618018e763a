package operand

import (
	"strings"

	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/revision"
)

const (
	// Namespace has the pods of kube-apiserver.
	Namespace = string(revision.KubeAPIServer)
	// cr is the name of the operator's CR.
	cr = operator.CR
	// Annotations of a key's Secret.
	modeAnnotation = "encryption.apiserver.operator.openshift.io/mode"
	// Annotations of a rotation of the KEK (openshift/enhancements#2041).
	convergedKEKAnnotation = "encryption.apiserver.operator.openshift.io/remote-key-converged-id"
	migratedKEKAnnotation  = "encryption.apiserver.operator.openshift.io/migrated-remote-key-id"
	// fieldManager of what the installer and the migrator write.
	fieldManager = "kmsharness-operand"
)

// podName is the name of a node's pod.
func (o Options) podName(node string) string {
	return strings.TrimPrefix(string(o.Component), "openshift-") + "-" + node
}
