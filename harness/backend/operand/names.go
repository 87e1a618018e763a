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
	// fieldManager of what the installer and the migrator write.
	fieldManager = "kmsharness-operand"
)

// podName is the name of a node's pod.
func (o Options) podName(node string) string {
	return strings.TrimPrefix(string(o.Component), "openshift-") + "-" + node
}
