package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/scenarios/mutants/plainoperator"
)

const component = "openshift-kube-apiserver"

// world is a real API server, and what is around an operator in one thread: an installer, a migrator and the kubelet's part of a check.
type world struct {
	*testing.T
	*edge    // of the administrator
	config   *rest.Config
	operator *edge
	revision int
	denied   bool
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func start(t *testing.T) *world {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("needs etcd and kube-apiserver: set KUBEBUILDER_ASSETS to their directory")
	}
	w := &world{T: t}
	list, err := crds.List(crds.TechPreview)
	w.must(err)
	env := &envtest.Environment{BinaryAssetsDirectory: assets, CRDInstallOptions: envtest.CRDInstallOptions{CRDs: append(list, migrationCRD())}}
	w.config, err = env.Start()
	w.must(err)
	t.Cleanup(func() { w.must(env.Stop()) })
	w.edge, err = newEdge(w.config, component, plainoperator.Defect{})
	w.must(err)
	w.must(rbacv1.AddToScheme(w.Scheme()))
	w.install()
	return w
}

// migrationCRD is a StorageVersionMigration without a schema.
func migrationCRD() *apiextensions.CustomResourceDefinition {
	keep := true
	crd := &apiextensions.CustomResourceDefinition{}
	crd.Name = "storageversionmigrations.migration.k8s.io"
	crd.Annotations = map[string]string{"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/747"}
	crd.Spec = apiextensions.CustomResourceDefinitionSpec{Group: "migration.k8s.io", Scope: apiextensions.ClusterScoped,
		Names: apiextensions.CustomResourceDefinitionNames{Plural: "storageversionmigrations", Singular: "storageversionmigration", Kind: "StorageVersionMigration", ListKind: "StorageVersionMigrationList"},
		Versions: []apiextensions.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true,
			Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
			Schema:       &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}}}}}
	return crd
}

func (w *world) install() {
	for _, n := range []string{plainoperator.Config, plainoperator.Managed, component} {
		w.must(w.Create(w.Context(), &corev1.Namespace{ObjectMeta: object("", n)}))
	}
	w.must(w.Create(w.Context(), &configv1.APIServer{ObjectMeta: object("", cluster)}))
	cr := &operatorv1.KubeAPIServer{ObjectMeta: object("", cluster)}
	cr.Spec.ManagementState, cr.Spec.LogLevel, cr.Spec.OperatorLogLevel = operatorv1.Managed, operatorv1.Normal, operatorv1.Normal
	w.must(w.Create(w.Context(), cr))
	w.patch(&operatorv1.KubeAPIServer{}, `{"status": {"nodeStatuses": [{"nodeName": "cp-1"}, {"nodeName": "cp-2"}],
		"conditions": [{"type": "SomebodyElses", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	for _, n := range []string{"cp-1", "cp-2"} {
		w.pod(n, 0)
	}
}

// patch changes the object named cluster, or its status.
func (w *world) patch(o client.Object, text string) {
	w.Helper()
	o.SetName(cluster)
	patch := client.RawPatch(types.MergePatchType, []byte(text))
	if strings.HasPrefix(text, `{"status"`) {
		w.must(w.Status().Patch(w.Context(), o, patch))
	} else {
		w.must(w.Patch(w.Context(), o, patch))
	}
}

// pod replaces the pod of a node.
func (w *world) pod(node string, revision int) {
	p := &corev1.Pod{ObjectMeta: object(component, "kube-apiserver-"+node), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "kube-apiserver", Image: "kube-apiserver"}}}}
	w.must(client.IgnoreNotFound(w.Delete(w.Context(), p.DeepCopy(), client.GracePeriodSeconds(0))))
	p.Labels = map[string]string{"apiserver": "true", "revision": fmt.Sprint(revision)}
	w.must(w.Create(w.Context(), p))
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	w.must(w.Status().Update(w.Context(), p))
}

func (w *world) request(encryption string) {
	w.patch(&configv1.APIServer{}, `{"spec": {"encryption": `+encryption+`}}`)
}

const (
	plain = `{"type": "identity", "kms": null}`
	vault = `{"type": "KMS", "kms": {"type": "Vault", "vault": {"kmsPluginImage": "registry.example.com/vault@sha256:0000000000000000000000000000000000000000000000000000000000000000",
		"vaultAddress": "https://vault.example.com:8200", "vaultKeyPath": "v1/transit/keys/kek", "authentication": {"type": "AppRole", "appRole": {"secret": {"name": "approle"}}}}}}`
)

// round is a pass of the operator, and everything around it once.
func (w *world) round() {
	w.operator.pass(w.Context())
	w.installer()
	w.migrator()
	w.kubelet()
}

// secret is one that may be absent: it has no name then.
func (w *world) secret(namespace, name string) (s corev1.Secret) {
	w.must(w.may(w.Context(), namespace, name, &s))
	return s
}

// installer rolls a new target out: one node a round.
func (w *world) installer() {
	target := w.secret(plainoperator.Managed, "encryption-config-"+component)
	if target.Name == "" {
		return
	}
	if !maps.EqualFunc(w.secret(component, fmt.Sprintf("encryption-config-%d", w.revision)).Data, target.Data, slices.Equal) {
		w.revision++
		w.must(w.Create(w.Context(), &corev1.Secret{ObjectMeta: object(component, fmt.Sprintf("encryption-config-%d", w.revision)), Data: target.Data}))
	}
	var pods corev1.PodList
	w.must(w.List(w.Context(), &pods, client.MatchingLabels{"apiserver": "true"}))
	for _, p := range pods.Items {
		if p.Labels["revision"] != fmt.Sprint(w.revision) {
			w.pod(p.Spec.NodeName, w.revision)
			return
		}
	}
}

// migrator ends every migration that has begun.
func (w *world) migrator() {
	for _, r := range plainoperator.Resources() {
		m := migration(r)
		w.must(w.may(w.Context(), "", m.GetName(), m))
		if m.Object["spec"] == nil || m.Object["status"] != nil {
			continue
		}
		m.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Succeeded", "status": "True", "lastUpdateTime": time.Now().UTC().Format(time.RFC3339)}}}
		w.must(w.Status().Update(w.Context(), m))
	}
}

// kubelet reports the result of a check: the encryption configuration must have one plugin with its credentials.
func (w *world) kubelet() {
	var pod corev1.Pod
	if w.must(w.may(w.Context(), component, preflightName, &pod)); pod.Name == "" {
		return
	}
	data := w.secret(component, preflightSecret).Data
	f, err := plainoperator.ReadFile(data)
	w.must(err)
	status, message := corev1.ConditionTrue, ""
	for id := range f.Fingerprints {
		if len(data[fmt.Sprintf("kms-plugin-secret-approle_role-id-%d", id)]) == 0 {
			status, message = corev1.ConditionFalse, "no credentials"
		}
	}
	if w.denied {
		status, message = corev1.ConditionFalse, "permission denied"
	}
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.Conditions = []corev1.PodCondition{{Type: "KMSPreflightResult", Status: status, Message: message},
		{Type: "KMSPreflightConfigHash", Status: corev1.ConditionTrue, Message: pod.Annotations[plainoperator.PreflightAnnotation]},
		{Type: "KMSPreflightRemoteKeyID", Status: corev1.ConditionTrue, Message: "remote-1"}}
	w.must(w.Status().Update(w.Context(), &pod))
}

func (w *world) conditions() map[string]operatorv1.OperatorCondition {
	var cr operatorv1.KubeAPIServer
	w.must(w.edge.must(w.Context(), "", cluster, &cr))
	out := map[string]operatorv1.OperatorCondition{}
	for _, c := range cr.Status.Conditions {
		out[c.Type] = c
	}
	return out
}

// until repeats rounds until a condition holds.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	for range 60 {
		if w.round(); holds() {
			return
		}
	}
	text, _ := json.MarshalIndent(w.conditions(), "", " ")
	w.Fatalf("%s: not after 60 rounds: %s", what, text)
}

// migrated reports whether a key has a mode and is migrated, and nothing is under way.
func (w *world) migrated(id int, mode plainoperator.Mode) func() bool {
	return func() bool {
		s := w.secret(plainoperator.Managed, plainoperator.KeyName(component, id))
		if s.Name == "" {
			return false
		}
		k, err := plainoperator.ReadKey(&s)
		w.must(err)
		return k.Mode == mode && k.Done() && slices.Contains(s.Finalizers, plainoperator.Finalizer) && w.conditions()[plainoperator.MigrationProgressing].Status == "False"
	}
}

func (w *world) is(condition string, status operatorv1.ConditionStatus, message string) func() bool {
	return func() bool {
		c := w.conditions()[condition]
		return c.Status == status && strings.Contains(c.Message, message)
	}
}

// run starts an operator.
func (w *world) run(config *rest.Config, d plainoperator.Defect) {
	var err error
	w.operator, err = newEdge(config, component, d)
	w.must(err)
}

func (w *world) credentials(secretID string) {
	s := w.secret(plainoperator.Config, "approle")
	s.Data = map[string][]byte{"role-id": []byte("r"), "secret-id": []byte(secretID)}
	if s.Name != "" {
		w.must(w.Update(w.Context(), &s))
		return
	}
	s.ObjectMeta = object(plainoperator.Config, "approle")
	w.must(w.Create(w.Context(), &s))
}

// The operator switches through every type, and reports what keeps it from it.
func TestSwitches(t *testing.T) {
	w := start(t)
	w.run(w.config, plainoperator.Defect{})
	w.round()
	if got := w.conditions(); got[plainoperator.Encrypted].Status != "False" || got["SomebodyElses"].Status != "True" || len(got) != 9 {
		t.Errorf("before the first request: %v", got)
	}
	w.request(`{"type": "aescbc"}`)
	w.until("aescbc", w.migrated(1, plainoperator.AESCBC))
	w.until("encrypted", w.is(plainoperator.Encrypted, "True", "secrets"))

	w.request(vault)
	w.until("the credential is missing", w.is(plainoperator.KeyDegraded, "True", "the secret openshift-config/approle"))
	w.credentials("s1")
	w.denied = true
	w.until("the check fails", w.is(plainoperator.PreflightDegraded, "True", "permission denied"))
	w.denied = false
	w.must(w.remove(t.Context(), &corev1.Pod{ObjectMeta: object(component, preflightName)})) // in place of the minute until it is repeated
	w.until("KMS", w.migrated(2, plainoperator.KMS))
	w.until("the pod of the check is gone", func() bool {
		var pod corev1.Pod
		w.must(w.may(t.Context(), component, preflightName, &pod))
		return pod.Name == ""
	})
	// A successor goes on, and other credentials make a revision and no key.
	w.run(w.config, plainoperator.Defect{})
	before := w.revision
	w.credentials("s2")
	w.until("other credentials", func() bool {
		return string(w.secret(component, fmt.Sprintf("encryption-config-%d", before+1)).Data["kms-plugin-secret-approle_secret-id-2"]) == "s2"
	})
	w.request(plain)
	w.until("identity", w.migrated(3, plainoperator.Identity))
	w.until("decrypted", w.is(plainoperator.Encrypted, "False", "clear text"))
	// More keys, until the first one is pruned.
	w.request(`{"type": "aesgcm"}`)
	w.until("aesgcm", w.migrated(4, plainoperator.AESGCM))
	w.request(plain)
	w.until("identity", w.migrated(5, plainoperator.Identity))
	w.until("pruned", func() bool { return w.secret(plainoperator.Managed, plainoperator.KeyName(component, 1)).Name == "" })
	if got := w.conditions(); got["SomebodyElses"].Status != "True" || w.secret(plainoperator.Managed, plainoperator.KeyName(component, 2)).Name == "" {
		t.Errorf("at the end: %v", got)
	}
}

// A refused write is reported, and an operator that replaces the conditions removes those of others.
func TestRefusedWriteAndReplacedConditions(t *testing.T) {
	w := start(t)
	role := &rbacv1.ClusterRole{ObjectMeta: object("", "reader"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"operator.openshift.io"}, Resources: []string{"kubeapiservers/status"}, Verbs: []string{"patch"}}}}
	w.must(w.Create(t.Context(), role))
	w.must(w.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "reader", APIGroup: rbacv1.GroupName}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"}}))
	limited := rest.CopyConfig(w.config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "reader", Groups: []string{"system:authenticated"}}
	w.run(limited, plainoperator.Defect{})
	w.request(`{"type": "aescbc"}`)
	w.until("the refused write", w.is(plainoperator.KeyDegraded, "True", "forbidden"))

	i := slices.IndexFunc(plainoperator.Defects(), func(d plainoperator.Defect) bool { return d.Replaces })
	w.run(w.config, plainoperator.Defects()[i])
	w.until("other conditions are removed", func() bool { return w.conditions()["SomebodyElses"].Status == "" })
}
