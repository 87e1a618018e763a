package operand

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/revision"
)

// Component is the API server that an operator under test manages, as the labels and names of its objects have it.
const Component = "openshift-kube-apiserver"

// Namespaces that an operator finds.
const (
	// Namespace has the pods of the API server and the Secrets of its revisions.
	Namespace = "openshift-kube-apiserver"
	// OperatorNamespace is the operator's own.
	OperatorNamespace = "openshift-kube-apiserver-operator"
	// ManagedNamespace has the keys and the configuration that the operator wants.
	ManagedNamespace = revision.Namespace
)

const (
	// configKey is the data key with the EncryptionConfiguration, and with a revision the name of a Secret in Namespace.
	configKey = "encryption-config"
	// DesiredName is the Secret in ManagedNamespace with the configuration that the operator wants.
	DesiredName = configKey + "-" + Component
	// pluginConfigPrefix, with a keyID, is the data key with a plugin's configuration.
	pluginConfigPrefix = "kms-plugin-config-"
	// cr is the name of the operator's CR.
	cr = "cluster"
	// revisionLabel and apiServerLabel are labels of the API server's pods.
	revisionLabel  = "revision"
	apiServerLabel = "apiserver"
	// Annotations of a key's Secret.
	modeAnnotation     = "encryption.apiserver.operator.openshift.io/mode"
	migratedAnnotation = "encryption.apiserver.operator.openshift.io/migrated-resources"
	// Annotations of a rotation of the KEK (openshift/enhancements#2041).
	convergedKEKAnnotation = "encryption.apiserver.operator.openshift.io/remote-key-converged-id"
	migratedKEKAnnotation  = "encryption.apiserver.operator.openshift.io/migrated-remote-key-id"
	// KeySelector selects the keys of the API server.
	KeySelector = revision.ComponentLabel + "=" + Component
	// fieldManager of what the installer and the migrator write.
	fieldManager = "kmsharness-operand"
)

// ConfigName is the name of the Secret of a revision.
func ConfigName(revision int) string { return configKey + "-" + strconv.Itoa(revision) }

// revisionNamed is the number of the revision whose Secret has a name.
func revisionNamed(name string) (number int, ok bool) {
	text, ok := strings.CutPrefix(name, configKey+"-")
	number, err := strconv.Atoi(text)
	return number, ok && err == nil
}

// PodName is the name of a node's pod.
func PodName(node string) string { return "kube-apiserver-" + node }

// OperatorResource is the resource of the operator's CR.
func OperatorResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}
}

// Migrations is the resource of kube-storage-version-migrator.
func Migrations() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "migration.k8s.io", Version: "v1alpha1", Resource: "storageversionmigrations"}
}
