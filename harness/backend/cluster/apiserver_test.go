package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/controlplane/provider"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// patience bounds the test on a machine that is busy with other things.
const patience = 3 * time.Minute

var operatorCR = schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}

// TestObjects makes the objects of a run on a real API server, uses the rights of an agent, and removes the run. No kubelet runs the pods.
func TestObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane: make nightly")
	}
	if _, err := assets.Ensure(t.Context(), assets.Options{LocalOnly: true}); err != nil {
		t.Skipf("needs etcd and kube-apiserver (%v): set %s, or let the harness build them", err, assets.EnvAssets)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server := provider.NewProvider().WithName("objects")
	kubeconfig, err := server.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Destroy(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	a, err := connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	before := inventoryOf(ctx, t, a)
	p, next := newTestRun(t, a), newTestRun(t, a)
	makeObjects(ctx, t, p)
	if err := next.check(ctx); err == nil || !strings.Contains(err.Error(), "run "+p.run.name) {
		t.Errorf("a second run: %v, want a refusal that names run %s", err, p.run.name)
	}
	testAgentRights(ctx, t, p)

	removed := make(chan error, 1)
	go func() { removed <- a.remove(ctx, p.run) }()
	endNamespace(ctx, t, a, p.run)
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if c := Compare(before, inventoryOf(ctx, t, a)); !c.None() {
		t.Errorf("the cluster is not as it was:\n%s", c)
	}
	if err := next.check(ctx); err != nil {
		t.Errorf("a run after the removal: %v", err)
	}
}

func newTestRun(t *testing.T, a *access) *controlPlane {
	t.Helper()
	s := scenario.Scenario{Name: "objects", Topology: scenario.Topology{ControlPlanes: 3}}.WithDefaults()
	p, err := newControlPlane(a, Options{}, s, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if err := p.requests.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func inventoryOf(ctx context.Context, t *testing.T, a *access) Inventory {
	t.Helper()
	all, err := TakeInventory(ctx, a.config, "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// makeObjects makes all that a run makes, for two operators.
func makeObjects(ctx context.Context, t *testing.T, p *controlPlane) {
	t.Helper()
	pods := p.access.resources(p.run.name)
	steps := []struct {
		what string
		do   func() error
	}{
		{"check", func() error { return p.check(ctx) }},
		{"namespace", func() error { return p.makeNamespace(ctx) }},
		{"manifests", func() error { return p.install(ctx, "") }},
		{"manifests of another operator", func() error { return p.install(ctx, "authentication") }},
		{"account", func() error { return p.makeAccount(ctx) }},
		{"role of the agents", func() error { return p.allow(ctx, []string{"cp-1", "cp-2"}) }},
		{"hub", func() error { return pods.Create(ctx, p.run.hubPod("n1", p.images)) }},
		{"pod of a node", func() error { return pods.Create(ctx, p.run.nodePod("cp-1", "cp-1", "n1", p.images)) }},
		{"age of a node", func() error { _, err := p.NodeSince(ctx, "cp-1"); return err }},
		{"end of a node", func() error { return p.RemoveNodeObject(ctx, "cp-1") }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.what, err)
		}
	}
}

// testAgentRights sends reports as an agent passes them on: with its account's token, impersonating a reporter.
func testAgentRights(ctx context.Context, t *testing.T, p *controlPlane) {
	t.Helper()
	client, err := kubernetes.NewForConfig(p.access.config)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := dynamic.NewForConfig(p.access.config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts(p.run.name).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer",
		"metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{"managementState": "Managed"}}}
	if _, err := admin.Resource(operatorCR).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	report := func(impersonated rest.ImpersonationConfig, node string) error {
		config := rest.AnonymousClientConfig(p.access.config)
		config.BearerToken, config.Impersonate = token.Status.Token, impersonated
		as, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = as.Resource(operatorCR).Patch(ctx, "cluster", types.ApplyPatchType, condition(t, node),
			metav1.PatchOptions{FieldManager: "kms-health-reporter-" + node}, "status")
		return err
	}
	reporter := func(node string) rest.ImpersonationConfig {
		return rest.ImpersonationConfig{UserName: contract.ReporterIdentity(node), Groups: []string{contract.ReporterGroup}}
	}
	// The API server learns of roles and admission policies a moment after they were written.
	err = until(ctx, "a report of the own node", func(context.Context) error { return report(reporter("cp-1"), "cp-1") })
	if err != nil {
		t.Error(err)
	}
	err = until(ctx, "a report of another node is refused", func(context.Context) error {
		if err := report(reporter("cp-1"), "cp-2"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only its own condition") {
			return errNotRefused
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for what, as := range map[string]rest.ImpersonationConfig{
		"a node that the run does not have": reporter("cp-9"),
		"an administrator":                  {UserName: "admin", Groups: []string{"system:masters"}},
		"the agent's own account":           {},
	} {
		if err := report(as, "cp-9"); !apierrors.IsForbidden(err) {
			t.Errorf("a report as %s: %v, want Forbidden", what, err)
		}
	}
}

var errNotRefused = errors.New("it was not refused by the admission policy")

func condition(t *testing.T, node string) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": map[string]any{"name": "cluster"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": contract.ConditionType(node), "status": "True", "reason": "AsExpected",
			"message": "[]", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// endNamespace does what the namespace controller does in a cluster: it ends a namespace that is deleted, and all that is in it.
func endNamespace(ctx context.Context, t *testing.T, a *access, r run) {
	t.Helper()
	client, err := kubernetes.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	var ns *corev1.Namespace
	err = until(ctx, "wait until the namespace is deleted", func(ctx context.Context) (err error) {
		if ns, err = client.CoreV1().Namespaces().Get(ctx, r.name, metav1.GetOptions{}); err == nil && ns.DeletionTimestamp == nil {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := metav1.ListOptions{LabelSelector: r.selector()}
	for _, end := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		client.CoreV1().Secrets(r.name).DeleteCollection, client.CoreV1().ServiceAccounts(r.name).DeleteCollection,
		client.RbacV1().RoleBindings(r.name).DeleteCollection, client.RbacV1().Roles(r.name).DeleteCollection,
	} {
		if err := end(ctx, metav1.DeleteOptions{}, all); err != nil {
			t.Fatal(err)
		}
	}
	ns.Spec.Finalizers = nil
	if _, err := client.CoreV1().Namespaces().Finalize(ctx, ns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
