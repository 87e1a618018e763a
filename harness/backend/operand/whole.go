package operand

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/openshift/api/features"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Version is the release that the cluster around a whole operator has. The operator must have the same: it waits for the feature gates of its own release.
const Version = "5.0.0"

// release is the major version of Version.
const release = 5

var (
	//go:embed whole.yaml
	wholeObjects []byte
	//go:embed podcommands.yaml
	podCommands []byte
)

// LabelMaster is on the nodes that an operator of static pods has pods on. A label of OpenShift: kind sets none.
const LabelMaster = "node-role.kubernetes.io/master"

// Namespaces that a whole operator reads besides those of Prepare.
const (
	configNamespace = "openshift-config"
	etcdNamespace   = "openshift-etcd"
)

// stubKind is a kind of OpenShift's API that a whole operator lists. Its CRD validates nothing.
type stubKind struct {
	group, version, kind, plural string
	namespaced                   bool
}

// stubKinds are the kinds that the harness has no use for itself.
func stubKinds() []stubKind {
	const config = "config.openshift.io"
	return []stubKind{
		{config, "v1", "Authentication", "authentications", false},
		{config, "v1", "ClusterVersion", "clusterversions", false},
		{config, "v1", "FeatureGate", "featuregates", false},
		{config, "v1", "Image", "images", false},
		{config, "v1", "Infrastructure", "infrastructures", false},
		{config, "v1", "Network", "networks", false},
		{config, "v1", "Node", "nodes", false},
		{config, "v1", "OAuth", "oauths", false},
		{config, "v1", "Proxy", "proxies", false},
		{config, "v1", "Scheduler", "schedulers", false},
		{"security.openshift.io", "v1", "SecurityContextConstraints", "securitycontextconstraints", false},
		{"controlplane.operator.openshift.io", "v1alpha1", "PodNetworkConnectivityCheck", "podnetworkconnectivitychecks", true},
		{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules", true},
	}
}

func (k stubKind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.plural}
}

// crd has no status subresource, so that objects are created with their status.
func (k stubKind) crd() *unstructured.Unstructured {
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.plural + "." + k.group, "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a stub"}},
		"spec": map[string]any{
			"group": k.group, "scope": scope,
			"names": map[string]any{"kind": k.kind, "listKind": k.kind + "List", "plural": k.plural},
			"versions": []any{map[string]any{"name": k.version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}}
}

// prepareWhole makes what a whole operator waits for besides: CRDs, cluster objects, certificates and the token of a service account.
func (o Options) prepareWhole(ctx context.Context) error {
	for _, name := range []string{configNamespace, etcdNamespace, "openshift-apiserver"} {
		if err := o.namespace(ctx, name); err != nil {
			return err
		}
	}
	for _, k := range stubKinds() {
		if err := o.create(ctx, crdResource(), k.crd()); err != nil {
			return err
		}
	}
	for _, k := range stubKinds() {
		if err := o.served(ctx, k.resource()); err != nil {
			return err
		}
	}
	if err := errors.Join(o.createObjects(ctx, wholeObjects), o.create(ctx, configv1.SchemeGroupVersion.WithResource("featuregates"), featureGates())); err != nil {
		return err
	}
	for _, bundle := range []struct{ namespace, name string }{
		{configNamespace, "etcd-serving-ca"}, {configNamespace, "admin-kubeconfig-client-ca"},
		{revision.Namespace, "csr-controller-ca"}, {revision.Namespace, "kubelet-bootstrap-kubeconfig"},
	} {
		_, err := o.Client.CoreV1().ConfigMaps(bundle.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: bundle.name},
			Data: map[string]string{"ca-bundle.crt": string(o.CA)}}, metav1.CreateOptions{FieldManager: fieldManager})
		if err := made(err, "ConfigMap", bundle.namespace, bundle.name); err != nil {
			return err
		}
	}
	return errors.Join(o.recoveryToken(ctx), o.firstStatuses(ctx), o.prepareKubelets(ctx))
}

// prepareKubelets lets kubelets run the pods of the operator, if there are any: the nodes get the label by which it finds them, and a policy gives the pods
// commands that the image of this project's plugin has.
func (o Options) prepareKubelets(ctx context.Context) error {
	if !o.Pods.Anew() {
		return nil
	}
	nodes, err := o.Pods.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("inspect the nodes: %w", err)
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		if _, err := o.Client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"`+LabelMaster+`":""}}}`),
			metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
			return fmt.Errorf("label node %s: %w", node, err)
		}
	}
	return o.createObjects(ctx, podCommands)
}

// firstStatuses writes that every node has the first revision, as after an upgrade. From a revision of 0, which means that there is none, updates of the
// status by the operator would be refused: they leave a 0 out, and the API lets no revision be unset.
func (o Options) firstStatuses(ctx context.Context) error {
	nodes, err := o.Pods.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("inspect the nodes: %w", err)
	}
	for _, revised := range []bool{false, true} { // the API refuses a revision of an entry that it does not have yet
		u, err := o.Dynamic.Resource(o.Resource).Get(ctx, cr, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read %s/%s: %w", o.Resource.Resource, cr, err)
		}
		var statuses []any
		for _, node := range slices.Sorted(maps.Keys(nodes)) {
			status := map[string]any{"nodeName": node}
			if revised {
				status["currentRevision"] = int64(firstRevision)
			}
			statuses = append(statuses, status)
		}
		u.Object["status"] = map[string]any{"latestAvailableRevision": int64(firstRevision), "nodeStatuses": statuses}
		if _, err := o.Dynamic.Resource(o.Resource).UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
			return fmt.Errorf("write the first revision of %s/%s: %w", o.Resource.Resource, cr, err)
		}
	}
	return nil
}

// createObjects creates the objects of a text in YAML.
func (o Options) createObjects(ctx context.Context, text []byte) error {
	resources := map[string]schema.GroupVersionResource{"ConfigMap": corev1.SchemeGroupVersion.WithResource("configmaps"), "Secret": corev1.SchemeGroupVersion.WithResource("secrets"),
		"MutatingAdmissionPolicy":        admissionv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"),
		"MutatingAdmissionPolicyBinding": admissionv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings")}
	for _, k := range stubKinds() {
		resources[k.kind] = k.resource()
	}
	all, err := readObjects(text)
	if err != nil {
		return err
	}
	for _, u := range all {
		if err := o.create(ctx, resources[u.GetKind()], u); err != nil {
			return err
		}
	}
	return nil
}

// readObjects reads the objects of a text in YAML. VERSION stands for that of the cluster, NAMESPACE for that of the API server's pods.
func readObjects(text []byte) (all []*unstructured.Unstructured, err error) {
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("VERSION"), []byte(Version)), []byte("NAMESPACE"), []byte(Namespace))
	all, err = manifests.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("objects of a whole operator: %w", err)
	}
	return all, nil
}

// featureGates knows every gate of the API, because an operator ends where it asks for one that is unknown, and enables only KMS.
func featureGates() *unstructured.Unstructured {
	var disabled []any
	all := features.FeatureSets(release, features.SelfManaged, configv1.Default)
	for _, gate := range slices.Concat(all.Enabled, all.Disabled) {
		if name := gate.FeatureGateAttributes.Name; name != features.FeatureGateKMSEncryption {
			disabled = append(disabled, map[string]any{"name": string(name)})
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": map[string]any{"name": cr}, "spec": map[string]any{},
		"status": map[string]any{"featureGates": []any{map[string]any{"version": Version,
			"enabled": []any{map[string]any{"name": string(features.FeatureGateKMSEncryption)}}, "disabled": disabled}}},
	}}
}

// recoveryToken fills the token of a service account, which controllers of the API fill in a cluster. The operator compares its UID.
func (o Options) recoveryToken(ctx context.Context) error {
	const name, secret = "localhost-recovery-client", "localhost-recovery-client-token"
	accounts := o.Client.CoreV1().ServiceAccounts(o.Namespace)
	account, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		account, err = accounts.Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("create service account %s/%s: %w", o.Namespace, name, err)
	}
	_, err = o.Client.CoreV1().Secrets(o.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret, Annotations: map[string]string{corev1.ServiceAccountNameKey: name, corev1.ServiceAccountUIDKey: string(account.UID)}},
		Type:       corev1.SecretTypeServiceAccountToken,
		Data:       map[string][]byte{"token": []byte("none"), "ca.crt": o.CA, "namespace": []byte(o.Namespace)},
	}, metav1.CreateOptions{FieldManager: fieldManager})
	return made(err, "Secret", o.Namespace, secret)
}
