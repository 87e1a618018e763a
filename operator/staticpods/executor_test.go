package staticpods_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/operator/staticpods"
)

var _ operator.Executor = (*staticpods.Executor)(nil)

// patience is longer than it takes to ask for a result.
const patience = 1200 * time.Millisecond

// world is an API in memory, and an operator with its revisions of encryption and plugin configurations.
type world struct {
	*testing.T
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	*staticpods.Executor
}

func newWorld(t *testing.T, nodes ...string) *world {
	cr := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": map[string]any{"name": "cluster"}}}
	var statuses []any
	for _, n := range nodes {
		statuses = append(statuses, map[string]any{"nodeName": n})
	}
	cr.Object["status"] = map[string]any{"nodeStatuses": statuses}
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "vault-approle"}, Data: map[string][]byte{"role-id": []byte("r"), "secret-id": []byte("s")}}
	w := &world{T: t, client: fake.NewClientset(credentials), dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{staticpods.OperatorResource(): "KubeAPIServerList", staticpods.Migrations(): "StorageVersionMigrationList"}, cr)}
	w.Executor = &staticpods.Executor{Client: w.client, Dynamic: w.dynamic, Encrypted: []string{"configmaps", "secrets"}}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// plugin of a key, with the content that the credentials have.
func (w *world) plugin(id uint64) revision.Plugin {
	p, err := config.ReadAPIServer([]byte(vault))
	w.must(err)
	s, err := w.client.CoreV1().Secrets("openshift-config").Get(w.Context(), "vault-approle", metav1.GetOptions{})
	w.must(err)
	return revision.Plugin{KeyID: id, Config: p.WithContent(map[config.Reference]string{{Kind: "Secret", Name: "vault-approle"}: config.ContentHash(s.Data)})}
}

// file makes a revision of the operator's encryption configuration, and returns what is in it.
func (w *world) file(number int, keys ...uint64) []byte {
	var all []revision.Key
	for _, id := range keys {
		all = append(all, revision.Key{ID: id, Type: config.KMS, Plugin: w.plugin(id).Config.WithoutContent()})
	}
	s, err := revision.ConfigSecret(staticpods.Component, revision.Config{Revision: number, Keys: keys},
		revision.File{Resources: w.Encrypted, Keys: all, Dir: contract.SocketDir})
	w.must(err)
	_, err = w.client.CoreV1().Secrets(revision.Namespace).Create(w.Context(), s, metav1.CreateOptions{})
	w.must(err)
	return s.Data[staticpods.ConfigKey]
}

func (w *world) desired() *corev1.Secret {
	s, err := w.client.CoreV1().Secrets(revision.Namespace).Get(w.Context(), staticpods.DesiredName, metav1.GetOptions{})
	w.must(err)
	return s
}

// install makes a revision of what is wanted.
func (w *world) install(number int) {
	_, err := w.client.CoreV1().Secrets(staticpods.Namespace).Create(w.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: staticpods.Namespace, Name: staticpods.ConfigName(number)}, Data: w.desired().Data}, metav1.CreateOptions{})
	w.must(err)
}

// pod replaces the pod of a node.
func (w *world) pod(node, revision string, ready bool) {
	_ = w.client.CoreV1().Pods(staticpods.Namespace).Delete(w.Context(), node, metav1.DeleteOptions{})
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: staticpods.Namespace, Name: node, Labels: map[string]string{"apiserver": "true", "revision": revision}}, Spec: corev1.PodSpec{NodeName: node}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	if ready {
		p.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	_, err := w.client.CoreV1().Pods(staticpods.Namespace).Create(w.Context(), p, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) nodes() map[string]core.Node {
	nodes, err := w.Nodes(w.Context())
	w.must(err)
	return nodes
}

// writes are those to the Secret with the configuration that is wanted.
func (w *world) writes() (n int) {
	for _, a := range w.client.Actions() {
		if (a.Matches("create", "secrets") || a.Matches("update", "secrets")) && a.(clienttesting.CreateAction).GetObject().(*corev1.Secret).Name == staticpods.DesiredName {
			n++
		}
	}
	return n
}

// What the operator wants of a node is in one Secret, which changes only where the content does; a plugin that the file names stays.
func TestDesired(t *testing.T) {
	w := newWorld(t)
	w.must(w.StopPlugins(t.Context(), "cp-1", nil))
	w.must(w.StartPlugins(t.Context(), "cp-1", []revision.Plugin{w.plugin(1)}))
	s := w.desired()
	got := slices.Sorted(maps.Keys(s.Data))
	want := []string{"encryption-config", "kms-plugin-config-1", "kms-plugin-secret-vault-approle_role-id-1", "kms-plugin-secret-vault-approle_secret-id-1"}
	if !slices.Equal(got, want) || !slices.Equal(s.Finalizers, []string{revision.Finalizer}) || len(s.Labels) > 0 {
		t.Fatalf("data %v of %+v", got, s.ObjectMeta)
	}
	if keys, err := revision.KeysInFile(s.Data["encryption-config"]); err != nil || len(keys) > 0 {
		t.Errorf("before there is an encryption configuration: %v, %v", keys, err)
	}
	file := w.file(7, 1)
	for range 2 { // the second time nothing changes
		w.must(w.StartPlugins(t.Context(), "cp-2", []revision.Plugin{w.plugin(1)}))
		w.must(w.RollOut(t.Context(), "cp-1", 7, file))
		w.must(w.StartPlugins(t.Context(), "cp-1", []revision.Plugin{w.plugin(21)}))
		w.must(w.StopPlugins(t.Context(), "cp-1", []uint64{1}))
	}
	if s = w.desired(); w.writes() != 3 || !bytes.Equal(s.Data["encryption-config"], file) || len(s.Data) != 7 {
		t.Errorf("%d writes, %v", w.writes(), slices.Sorted(maps.Keys(s.Data)))
	}
	w.must(w.RollOut(t.Context(), "cp-1", 8, w.file(8, 21)))
	w.must(w.StopPlugins(t.Context(), "cp-1", []uint64{1}))
	if s = w.desired(); len(s.Data) != 4 || s.Data["kms-plugin-config-21"] == nil {
		t.Errorf("%v", slices.Sorted(maps.Keys(s.Data)))
	}
}

// A node has what the revision of its ready pod has.
func TestNodes(t *testing.T) {
	w := newWorld(t, "cp-1", "cp-2", "cp-3")
	w.pod("cp-1", "1", true)
	w.pod("elsewhere", "1", true)
	if n := w.nodes(); len(n) != 3 || !n["cp-1"].Up || n["cp-1"].Loaded != 0 || len(n["cp-1"].Plugins) > 0 || !n["cp-2"].Unavailable || n["cp-1"].Unavailable {
		t.Errorf("before there is a revision: %+v", n)
	}
	w.must(w.StartPlugins(t.Context(), "cp-1", []revision.Plugin{w.plugin(1)}))
	w.install(2)
	w.pod("cp-1", "2", true)
	w.must(w.RollOut(t.Context(), "cp-1", 4, w.file(4, 1)))
	w.install(3)
	w.pod("cp-2", "3", false)
	w.pod("cp-3", "3", true)
	w.must(w.Report(t.Context(), "cp-3", []uint64{1}))
	n := w.nodes()
	if got := n["cp-1"]; !got.Up || got.Loaded != 0 || got.Plugins[1] != w.plugin(1).Config {
		t.Errorf("plugins alone: %+v", got)
	}
	if got := n["cp-2"]; got.Up || got.Unavailable || len(got.Plugins) > 0 {
		t.Errorf("a pod that is not ready: %+v", got)
	}
	if got := n["cp-3"]; !got.Up || got.Loaded != 4 || !slices.Equal(got.Reporter, []uint64{1}) || got.Plugins[1] != w.plugin(1).Config {
		t.Errorf("an encryption configuration: %+v", got)
	}
	// Other credentials make another plugin.
	before := w.plugin(1)
	s, err := w.client.CoreV1().Secrets("openshift-config").Get(t.Context(), "vault-approle", metav1.GetOptions{})
	w.must(err)
	s.Data["secret-id"] = []byte("other")
	_, err = w.client.CoreV1().Secrets("openshift-config").Update(t.Context(), s, metav1.UpdateOptions{})
	w.must(err)
	w.must(w.StartPlugins(t.Context(), "cp-1", []revision.Plugin{w.plugin(1)}))
	w.install(4)
	w.pod("cp-3", "4", true)
	if got := w.nodes()["cp-3"].Plugins[1]; got == before.Config || got != w.plugin(1).Config {
		t.Errorf("other credentials: %+v", got)
	}
	w.pod("cp-1", "x", true)
	if _, err := w.Nodes(t.Context()); err == nil || !strings.Contains(err.Error(), `label revision is "x": expected a number`) {
		t.Error(err)
	}
}

// A migration is a new object for each resource, whatever is left from before, and its result is that of the object.
func TestRewrite(t *testing.T) {
	for _, test := range []struct{ condition, want string }{{"Succeeded", ""}, {"Failed", "encryption-migration-core-configmaps: it failed: no quota"}} {
		w := newWorld(t)
		w.dynamic.PrependReactor("create", "storageversionmigrations", func(a clienttesting.Action) (bool, runtime.Object, error) {
			u := a.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
			u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Running", "status": "False"}, map[string]any{"type": test.condition, "status": "True", "message": "no quota"}}}
			return false, nil, nil
		})
		for key := range uint64(2) {
			err := w.Rewrite(t.Context(), key)
			if text := fmt.Sprint(err); err == nil != (test.want == "") || !strings.Contains(text, test.want) {
				t.Fatal(err)
			}
		}
		all, err := w.dynamic.Resource(staticpods.Migrations()).List(t.Context(), metav1.ListOptions{})
		w.must(err)
		if len(all.Items) != 2 || all.Items[1].GetName() != "encryption-migration-core-secrets" || all.Items[1].GetAnnotations()["encryption.apiserver.operator.openshift.io/write-key"] != "1" {
			t.Errorf("%+v", all.Items)
		}
	}
}

// A check is a pod beside a Secret with the plugin alone. Its conditions are the result, and nothing is left of it.
func TestCheck(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, Message: message}
	}
	for name, test := range map[string]struct {
		said []corev1.PodCondition
		want core.Preflight
	}{
		"passed": {[]corev1.PodCondition{condition("KMSPreflightResult", "True", ""), condition("KMSPreflightConfigHash", "True", "abc"), condition("KMSPreflightRemoteKeyID", "True", "kek")},
			core.Preflight{Hash: "abc", OK: true, KEK: "kek"}},
		"failed": {[]corev1.PodCondition{condition("KMSPreflightResult", "False", "denied"), condition("KMSPreflightConfigHash", "True", "abc")},
			core.Preflight{Hash: "abc", Message: "denied"}},
		"another's": {[]corev1.PodCondition{condition("KMSPreflightResult", "True", ""), condition("KMSPreflightConfigHash", "True", "other")},
			core.Preflight{Hash: "abc", Message: "pod openshift-kube-apiserver/kms-preflight: context deadline exceeded: the pod has no result"}},
	} {
		w := newWorld(t)
		var data map[string][]byte
		w.client.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			switch o := a.(clienttesting.CreateAction).GetObject().(type) {
			case *corev1.Pod:
				o.Status.Conditions = test.said
			case *corev1.Secret:
				data = o.Data
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if got := w.Check(ctx, w.plugin(1).Config, "abc"); got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
		cancel()
		if c, err := staticpods.ReadConfiguration(&corev1.Secret{Data: data}); err != nil || len(c.Plugins) != 1 || len(data) != 4 {
			t.Errorf("%s: %v, %v", name, err, slices.Sorted(maps.Keys(data)))
		}
		pods, err := w.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		w.must(err)
		if len(pods.Items) > 0 {
			t.Errorf("%s: the pod is left", name)
		}
	}
}
