package staticpods

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/revision"
)

// Component is the API server, as the labels and names of OpenShift's objects have it.
const Component = revision.OpenShiftKubeAPIServer

const (
	// Namespace has the pods of the API server, and a Secret for each of their revisions.
	Namespace = "openshift-kube-apiserver"
	// OperatorNamespace is the operator's own.
	OperatorNamespace = "openshift-kube-apiserver-operator"
	// DesiredName is the Secret in revision.Namespace with the configuration that the operator wants.
	DesiredName = ConfigKey + "-" + string(Component)
	// ConfigKey is the data key with the EncryptionConfiguration, and with a revision the name of a Secret in Namespace.
	ConfigKey = "encryption-config"
	// PluginConfigPrefix, with a keyID, is the data key with a plugin's configuration.
	PluginConfigPrefix = "kms-plugin-config-"
	// RevisionLabel and APIServerLabel are labels of the API server's pods.
	RevisionLabel  = "revision"
	APIServerLabel = "apiserver"
	// CR is the name of the operator's CR.
	CR = "cluster"
)

// Names of a pre-flight check.
const (
	PreflightName     = "kms-preflight"
	PreflightApp      = "openshift-kms-preflight"
	PreflightSelector = "app=" + PreflightApp
	// PreflightSecret has the encryption configuration whose newest plugin is checked.
	PreflightSecret = PreflightName + "-encryption-config"
	// PreflightHash is the annotation with the hash of the configuration.
	PreflightHash = "encryption.apiserver.operator.openshift.io/kms-preflight-config-hash"
)

// Conditions of a pre-flight pod.
const (
	PreflightResult    corev1.PodConditionType = "KMSPreflightResult"
	PreflightConfig    corev1.PodConditionType = "KMSPreflightConfigHash"
	PreflightRemoteKey corev1.PodConditionType = "KMSPreflightRemoteKeyID"
)

// Conditions of a StorageVersionMigration.
const (
	MigrationRunning   = "Running"
	MigrationSucceeded = "Succeeded"
	MigrationFailed    = "Failed"
)

// ConfigName is the name of the Secret of a revision.
func ConfigName(revision int) string { return ConfigKey + "-" + strconv.Itoa(revision) }

// OperatorResource is the resource of the operator's CR.
func OperatorResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}
}

// Migrations is the resource of kube-storage-version-migrator.
func Migrations() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "migration.k8s.io", Version: "v1alpha1", Resource: "storageversionmigrations"}
}
