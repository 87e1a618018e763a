package operator

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/revision"
)

// APIServer is an API server whose data is encrypted, by the names that OpenShift gives to what belongs to it.
type APIServer struct {
	Component revision.Component
	// Namespace has the pods of the API server, and a Secret for each of their revisions. OperatorNamespace is the operator's own.
	Namespace, OperatorNamespace string
	// ClusterOperator is the name of the operator's ClusterOperator.
	ClusterOperator string
	// Kind and Resource of the operator's CR.
	Kind     string
	Resource schema.GroupVersionResource
	// Encrypted are the resources that OpenShift encrypts there.
	Encrypted []schema.GroupVersionResource
	// Migrations is the resource of StorageVersionMigrations.
	Migrations schema.GroupVersionResource
}

// APIServerOf is the API server of an operator: kubeapiserver, openshiftapiserver or authentication.
func APIServerOf(operator string) (APIServer, error) {
	of := func(c revision.Component, clusterOperator, operatorNamespace, kind, plural string, encrypted ...schema.GroupVersionResource) (APIServer, error) {
		return APIServer{Component: c, Namespace: string(c), ClusterOperator: clusterOperator, OperatorNamespace: operatorNamespace, Kind: kind,
			Resource: schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: plural}, Encrypted: encrypted, Migrations: revision.Migrations()}, nil
	}
	v1 := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	switch operator {
	case "kubeapiserver":
		return of(revision.KubeAPIServer, "kube-apiserver", "openshift-kube-apiserver-operator", "KubeAPIServer", "kubeapiservers", v1("", "configmaps"), v1("", "secrets"))
	case "openshiftapiserver":
		return of(revision.OpenShiftAPIServer, "openshift-apiserver", "openshift-apiserver-operator", "OpenShiftAPIServer", "openshiftapiservers", v1("route.openshift.io", "routes"))
	case "authentication":
		return of(revision.OAuthAPIServer, "authentication", "openshift-authentication-operator", "Authentication", "authentications",
			v1("oauth.openshift.io", "oauthaccesstokens"), v1("oauth.openshift.io", "oauthauthorizetokens"))
	}
	return APIServer{}, fmt.Errorf("operator %q: expected kubeapiserver, openshiftapiserver or authentication", operator)
}

// static reports whether the pods are static: then the status of the CR has the nodes. Others are on all control-plane nodes.
func (a APIServer) static() bool { return a.Component == revision.KubeAPIServer }

// DesiredName is the Secret in revision.Namespace with the configuration that the operator wants.
func (a APIServer) DesiredName() string { return ConfigKey + "-" + string(a.Component) }

const (
	// ConfigKey is the data key with the EncryptionConfiguration, and with a revision the name of a Secret beside the pods.
	ConfigKey = "encryption-config"
	// PluginConfigPrefix, with a keyID, is the data key with a plugin's configuration.
	PluginConfigPrefix = "kms-plugin-config-"
	// RevisionLabel and APIServerLabel are labels of the API server's pods.
	RevisionLabel  = "revision"
	APIServerLabel = "apiserver"
	// Credentials is the namespace of what plugins need to log in.
	Credentials = "openshift-config"
	// CR is the name of the operator's CR, and of the APIServer configuration.
	CR = "cluster"
	// nodeLabel is on the nodes that have API servers.
	nodeLabel = "node-role.kubernetes.io/control-plane"
	// pluginContainer is in the names of containers of plugins, which end with the keyID.
	pluginContainer = "kms-plugin-"
)

// PluginContainer is the name of the container of a key's plugin.
func PluginContainer(keyID uint64) string {
	return "vault-" + pluginContainer + strconv.FormatUint(keyID, 10)
}

// keyOfContainer is the key whose plugin runs in a container of a name.
func keyOfContainer(name string) (keyID uint64, ok bool) {
	_, text, ok := strings.Cut(name, pluginContainer)
	keyID, err := revision.ParseKeyID(text)
	return keyID, ok && err == nil
}

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

// RevisionName is the name of the Secret of a revision of the pods.
func RevisionName(revision int) string { return ConfigKey + "-" + strconv.Itoa(revision) }

// RevisionNamed is the number of the revision whose Secret has a name.
func RevisionNamed(name string) (number int, ok bool) {
	text, ok := strings.CutPrefix(name, ConfigKey+"-")
	number, err := strconv.Atoi(text)
	return number, ok && err == nil
}
