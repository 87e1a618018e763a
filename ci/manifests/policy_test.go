package manifests

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
)

// installed is a real API server with the manifests, of which a test may change the text of the policy.
type installed struct {
	t        *testing.T
	operator core.Operator
	config   *rest.Config
	admin    dynamic.Interface
}

func (in *installed) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: core.OperatorGroup, Version: core.OperatorVersion, Resource: in.operator.Resource}
}

func install(t *testing.T, name string) *installed {
	t.Helper()
	operator, err := core.OperatorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := crds.List(crds.TechPreview)
	if err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{BinaryAssetsDirectory: assetstest.Dir(t), CRDInstallOptions: envtest.CRDInstallOptions{CRDs: list}}
	in := &installed{t: t, operator: operator}
	if in.config, err = env.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	in.config.QPS = -1
	if in.admin, err = dynamic.NewForConfig(in.config); err != nil {
		t.Fatal(err)
	}
	objects, err := Objects(Options{Operator: name})
	if err != nil {
		t.Fatal(err)
	}
	cr := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": operator.Kind, "spec": map[string]any{"managementState": "Managed"}}}
	cr.SetName("cluster")
	for _, o := range append(objects, cr) {
		r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if o.GetKind() == "ValidatingAdmissionPolicy" {
			r.Resource = "validatingadmissionpolicies"
		}
		if _, err := in.admin.Resource(r).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	return in
}

// apply writes the condition of a node as a user, another one each time, and returns what the API server answers.
func (in *installed) apply(as rest.ImpersonationConfig, node string) error {
	return in.applyStatus(as, contract.FieldManager(node), conditionOf(node, "True", contract.ReporterConditionReason, time.Now().String()))
}

func conditionOf(node, status, reason, message string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{
		"type": contract.ConditionType(node), "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
}

// applyStatus applies what a field manager says, as a user.
func (in *installed) applyStatus(as rest.ImpersonationConfig, manager string, status map[string]any) error {
	change := map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": in.operator.Kind}
	if status != nil {
		change["status"] = status
	}
	return in.patch(as, manager, types.ApplyPatchType, change)
}

// patch makes any change of the status, as a user; the zero user is the administrator.
func (in *installed) patch(as rest.ImpersonationConfig, manager string, kind types.PatchType, change any) error {
	config := rest.CopyConfig(in.config)
	config.Impersonate = as
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: manager}
	if kind == types.ApplyPatchType {
		options.Force = ptr.To(true)
	}
	_, err = client.Resource(in.resource()).Patch(in.t.Context(), core.OperatorObject, kind, body, options, "status")
	return err
}

// settle waits until the API server has loaded the policy: until it answers a request as expected.
func (in *installed) settle(as rest.ImpersonationConfig, node string, denied bool) {
	in.t.Helper()
	err := wait.PollUntilContextTimeout(in.t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return apierrors.IsForbidden(in.apply(as, node)) == denied, nil
	})
	if err != nil {
		in.t.Fatalf("%s writes the entry of %s, denied %v: %v", as.UserName, node, denied, err)
	}
}

func account(node ...string) rest.ImpersonationConfig {
	as := rest.ImpersonationConfig{UserName: contract.ReporterAccount(Namespace)}
	if len(node) > 0 {
		as.Extra = map[string][]string{contract.NodeNameExtra: node}
	}
	return as
}

func certificate(node string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: contract.ReporterIdentity(node), Groups: []string{contract.ReporterGroup}}
}

func legacy(node string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: contract.ReporterToken(node), Groups: []string{contract.TokenGroup}}
}

// The node of a reporter is in its certificate, its service account or the token of that, and nowhere else.
func TestAReporterWritesForItsNode(t *testing.T) {
	in := install(t, "kubeapiserver")
	in.settle(certificate("cp-1"), "cp-2", true)
	both := certificate("cp-1")
	both.Extra = map[string][]string{contract.NodeNameExtra: {"cp-2"}}
	namingAnother := legacy("cp-1")
	namingAnother.Extra = both.Extra
	for _, c := range []struct {
		name    string
		as      rest.ImpersonationConfig
		node    string
		allowed bool
	}{
		{"a certificate, its node", certificate("cp-1"), "cp-1", true},
		{"a token, its node", account("cp-1"), "cp-1", true},
		{"a token, another node", account("cp-1"), "cp-2", false},
		{"a token that names no node", account(), "cp-1", false},
		{"a legacy token, its node", legacy("cp-1"), "cp-1", true},
		{"a legacy token, another node", legacy("cp-1"), "cp-2", false},
		{"an extra field does not override a legacy token", namingAnother, "cp-2", false},
		{"an extra field does not override a certificate", both, "cp-2", false},
		{"another service account that names the node", rest.ImpersonationConfig{UserName: contract.ReporterAccount("default"), Extra: map[string][]string{contract.NodeNameExtra: {"cp-1"}}}, "cp-1", false},
	} {
		if err := in.apply(c.as, c.node); (err == nil) != c.allowed || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, expected allowed %v", c.name, err, c.allowed)
		}
	}
}

// A policy with the mistake lets a token of one node write the entry of another, which is what the test above looks for.
func TestWrongPoliciesAreFound(t *testing.T) {
	in := install(t, "kubeapiserver")
	in.settle(account("cp-1"), "cp-2", true)
	policies := in.admin.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"})
	good, err := policies.Get(t.Context(), "kms-health-reporter-kubeapiservers", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"it is about certificates alone":           {` || request.userInfo.username == '` + contract.ReporterAccount(Namespace) + `'`, ` || false`},
		"it takes the node from the field manager": {`request.userInfo.?extra[?'` + contract.NodeNameExtra + `'][?0].orValue('')`, `(object.metadata.managedFields.exists(m, m.manager == '` + contract.FieldManager("cp-2") + `') ? 'cp-2' : 'cp-1')`},
	} {
		text, err := json.Marshal(good.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		wrong := strings.Replace(string(text), change[0], change[1], 1)
		if wrong == string(text) {
			t.Fatalf("%s: the policy does not have %s", name, change[0])
		}
		if _, err := policies.Patch(t.Context(), good.GetName(), types.MergePatchType, []byte(`{"spec":`+wrong+`}`), metav1.PatchOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		in.settle(account("cp-1"), "cp-2", false)
		if _, err := policies.Patch(t.Context(), good.GetName(), types.MergePatchType, []byte(`{"spec":`+string(text)+`}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		in.settle(account("cp-1"), "cp-2", true)
	}
}

// exceeds is what a reporter should not be able to write, and is; empty under a policy that bounds reports.
func (in *installed) exceeds() (out []string) {
	as := certificate("cp-1")
	over := strings.Repeat("x", contract.MaxReportBytes)
	items := func(detail string) map[string]any {
		var list []any
		for i := range contract.MaxEntries {
			list = append(list, map[string]any{"nodeName": "cp-1", "keyID": strconv.Itoa(10 + i), "status": "Error", "remoteKeyID": strings.Repeat("k", 1022), "detail": detail, "lastCheckedTime": "2026-01-01T00:00:00Z"})
		}
		return map[string]any{"encryptionStatus": map[string]any{"healthReports": list}}
	}
	for _, c := range []struct {
		name    string
		status  map[string]any
		allowed bool
	}{
		{"the longest message", conditionOf("cp-1", "True", "AsExpected", over[:contract.MaxMessageBytes]), true},
		{"a longer message", conditionOf("cp-1", "True", "AsExpected", over), false},
		{"a message of wide characters", conditionOf("cp-1", "True", "AsExpected", strings.Repeat("\U0001F600", 20000)), false},
		{"a message that etcd would still take", conditionOf("cp-1", "True", "AsExpected", strings.Repeat(over, 20)), false},
		{"a long reason", conditionOf("cp-1", "True", over, ""), false},
		{"the longest items", items(strings.Repeat("d", 1024)), true},
		{"items of wide characters", items(strings.Repeat("\U0001F600", 1024)), false},
	} {
		switch err := in.applyStatus(as, contract.FieldManager("cp-1"), c.status); {
		case c.allowed && err != nil:
			in.t.Errorf("%s: %v", c.name, err)
		case !c.allowed && err == nil:
			out = append(out, c.name)
		case !c.allowed && !apierrors.IsForbidden(err):
			in.t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := in.applyStatus(certificate("cp-2"), contract.FieldManager("cp-2"), conditionOf("cp-2", "True", "AsExpected", "")); err != nil {
		in.t.Errorf("another reporter: %v", err)
	}
	return out
}

// What one reporter makes the API server store is bounded: it cannot fill the CR, which then nobody could write.
func TestAReporterIsBounded(t *testing.T) {
	in := install(t, "kubeapiserver")
	in.settle(certificate("cp-1"), "cp-2", true)
	if got := in.exceeds(); len(got) > 0 {
		t.Errorf("accepted %v", got)
	}
	in.eachWrong(in.exceeds, map[string][2]string{
		"it has no bound of the condition": {"size(bytes(c.?message.orValue(''))) <=", "0 * size(bytes(c.?message.orValue(''))) <="},
		"it counts characters":             {"size(bytes(c.?message.orValue('')))", "size(c.?message.orValue(''))"},
		"it has no bound of the items":     {".sum() <=", ".sum() * 0 <="},
	})
}

// eachWrong changes a text of the policy, one after the other, until accepted shows what the policy should refuse.
func (in *installed) eachWrong(accepted func() []string, changes map[string][2]string) {
	in.t.Helper()
	t, policies := in.t, in.admin.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"})
	good, err := policies.Get(t.Context(), "kms-health-reporter-"+in.operator.Resource, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range changes {
		spec := runtime.DeepCopyJSON(good.Object)["spec"].(map[string]any)
		changed := false
		for _, v := range spec["validations"].([]any) {
			v := v.(map[string]any)
			text := v["expression"].(string)
			v["expression"] = strings.Replace(text, change[0], change[1], 1)
			changed = changed || v["expression"] != text
		}
		if !changed {
			t.Fatalf("%s: the policy does not have %s", name, change[0])
		}
		body, err := json.Marshal(map[string]any{"spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policies.Patch(t.Context(), good.GetName(), types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			got = accepted()
			return len(got) > 0, nil
		}); err != nil {
			t.Errorf("%s: nothing shows it", name)
		}
		t.Logf("%s: accepted %v", name, got)
		body, _ = json.Marshal(map[string]any{"spec": good.Object["spec"]})
		if _, err := policies.Patch(t.Context(), good.GetName(), types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			return len(accepted()) == 0, nil
		}); err != nil {
			t.Fatalf("the policy is not in force again: %v", err)
		}
	}
}
