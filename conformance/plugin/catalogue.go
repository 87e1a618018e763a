package plugin

import (
	"slices"

	"github.com/kmsharness/kmsharness/conformance"
)

// Catalogue lists all checks, in the order in which they run: what others depend on comes first, what ends the plugin's process comes late, and the
// search for secrets comes last, in all that was sent before.
func Catalogue() []Check {
	return slices.Concat(transport(), statusChecks(), wires(), envelope(), hostile(), load(), rotation(), honesty(), lifecycle(), secrecy())
}

// Rules are checks without their functions.
func Rules(checks []Check) (rules []conformance.Check) {
	for _, c := range checks {
		rules = append(rules, c.Check)
	}
	return rules
}

// Sources that many checks cite.
const (
	sourceProto = "k8s.io/kms/apis/v2/api.proto"
	sourceKEP   = "KEP-3299"
	sourceDocs  = "kubernetes.io/docs/tasks/administer-cluster/kms-provider"
	// sourceEnvelope is the code of kube-apiserver that validates a plugin's answers.
	sourceEnvelope = "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/envelope.go"
	// sourceConfig is the code of kube-apiserver that polls a plugin.
	sourceConfig = "k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go"
	// sourceClient is kube-apiserver's client of a plugin.
	sourceClient = "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/grpc_service.go"
)
