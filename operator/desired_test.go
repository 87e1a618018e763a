package operator

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/informer"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// patience is longer than it takes to ask for a result.
const patience = 1200 * time.Millisecond

// world is an operator of an API in memory, whose caches show what the test puts into them.
type world struct {
	*testing.T
	client  *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	*Operator
	seen    Seen
	version int
}

func newWorld(t *testing.T, name string, nodes ...string) *world {
	a, err := APIServerOf(name)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, client: fake.NewClientset(), seen: NewSeen(), dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{a.Resource: a.Kind + "List", revision.Migrations(): "StorageVersionMigrationList"})}
	w.Operator = with(Options{APIServer: a, Log: slog.New(slog.DiscardHandler), Clock: clock.RealClock{}, Random: rand.Reader}, w.client, w.dynamic)
	var statuses []any
	for i, n := range nodes {
		statuses = append(statuses, map[string]any{"nodeName": n})
		w.show(w.sources.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n, CreationTimestamp: metav1.Unix(int64(i), 0)}})
	}
	w.show(w.sources.operator, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": CR}, "status": map[string]any{"nodeStatuses": statuses}}})
	w.credentials("s")
	return w
}

// show puts a version of an object into a cache.
func (w *world) show(c *informer.Cache, o metav1.Object) {
	w.Helper()
	w.version++
	o.SetResourceVersion(fmt.Sprint(w.version))
	w.must(c.Add(o))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) credentials(secretID string) {
	w.show(w.sources.credentialSecrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "vault-approle"},
		Data: map[string][]byte{"role-id": []byte("r"), "secret-id": []byte(secretID)}})
}

// plugin of a key, with the content that the credentials have.
func (w *world) plugin(id uint64) revision.Plugin {
	p, err := config.ReadAPIServer([]byte(vault))
	w.must(err)
	all := map[config.Reference]string{}
	for r, content := range w.contents() {
		all[r] = config.ContentHash(content)
	}
	return revision.Plugin{KeyID: id, Config: p.WithContent(all)}
}

// file makes a revision of the operator's encryption configuration, and returns what is in it.
func (w *world) file(number int, keys ...uint64) []byte {
	var all []revision.Key
	for _, id := range keys {
		all = append(all, revision.Key{ID: id, Type: config.KMS, Plugin: w.plugin(id).Config.WithoutContent()})
	}
	s, err := revision.ConfigSecret(w.Component, revision.Config{Revision: number, Keys: keys}, revision.File{Resources: w.encrypted(), Keys: all, Dir: contract.SocketDir})
	w.must(err)
	w.must(w.seen.Add(ReadSecret(s)))
	return s.Data[ConfigKey]
}

// want has the operator change what is desired of the pods, and returns the Secret with it.
func (w *world) want(revisionNumber int, keyIDs ...uint64) *corev1.Secret {
	w.Helper()
	w.must(w.wants(revisionNumber, keyIDs...))
	s, err := w.client.CoreV1().Secrets(revision.Namespace).Get(w.Context(), w.DesiredName(), metav1.GetOptions{})
	if err != nil {
		return &corev1.Secret{}
	}
	w.show(w.sources.desired, s)
	return s
}

func (w *world) wants(revisionNumber int, keyIDs ...uint64) (err error) {
	if w.seen.Desired, err = w.content(w.seen); err != nil {
		return err
	}
	c := core.Content{Revision: revisionNumber}
	for _, id := range keyIDs {
		c.Plugins = append(c.Plugins, w.plugin(id))
	}
	return w.carry(w.Context(), w.seen, core.Desire{Content: c})
}

// install makes a revision of what is wanted.
func (w *world) install(number int) {
	s, _ := w.desired()
	w.show(w.sources.revisions, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: RevisionName(number)}, Data: s.Data})
}

// pod replaces the pod of a node. A plugin of a key may wait.
func (w *world) pod(node, revision string, ready bool, waits ...uint64) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: node, Labels: map[string]string{"apiserver": "true", "revision": revision}}, Spec: corev1.PodSpec{NodeName: node}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	if ready {
		p.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	for _, id := range waits {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: PluginContainer(id),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}})
	}
	w.show(w.sources.pods, p)
}

func (w *world) read() map[string]core.Node {
	w.Helper()
	nodes, err := w.nodes(w.seen)
	w.must(err)
	return nodes
}

// What the operator wants of all pods is in one Secret, and read back from it.
func TestDesired(t *testing.T) {
	w := newWorld(t, "kubeapiserver")
	if c, err := w.content(w.seen); err != nil || !c.Equal(core.Content{}) {
		t.Errorf("before there is anything: %+v, %v", c, err)
	}
	s := w.want(0, 1)
	got := slices.Sorted(maps.Keys(s.Data))
	want := []string{"encryption-config", "kms-plugin-config-1", "kms-plugin-secret-vault-approle_role-id-1", "kms-plugin-secret-vault-approle_secret-id-1"}
	if !slices.Equal(got, want) || !slices.Equal(s.Finalizers, []string{revision.Finalizer}) || len(s.Labels) > 0 {
		t.Fatalf("data %v of %+v", got, s.ObjectMeta)
	}
	if keys, _, err := revision.KeysInFile(s.Data["encryption-config"]); err != nil || len(keys) > 0 {
		t.Errorf("before there is an encryption configuration: %v, %v", keys, err)
	}
	file := w.file(7, 1)
	s = w.want(7, 21, 1)
	if c, err := w.content(w.seen); err != nil || !c.Equal(core.Content{Revision: 7, Plugins: []revision.Plugin{w.plugin(21), w.plugin(1)}}) {
		t.Errorf("%+v, %v", c, err)
	}
	if !bytes.Equal(s.Data["encryption-config"], file) || len(s.Data) != 7 {
		t.Errorf("%v", slices.Sorted(maps.Keys(s.Data)))
	}
	w.file(8, 21)
	if s = w.want(8, 21); len(s.Data) != 4 || s.Data["kms-plugin-config-21"] == nil {
		t.Errorf("%v", slices.Sorted(maps.Keys(s.Data)))
	}
	if _, err := w.content(NewSeen()); !behind(err) {
		t.Errorf("a file that was not seen yet: %v", err)
	}
	if err := w.wants(9, 21); !behind(err) {
		t.Errorf("a revision that is not there: %v", err)
	}
	w.must(w.sources.credentialSecrets.Replace(nil, ""))
	if err := w.wants(8, 21, 5); !behind(err) {
		t.Errorf("without credentials: %v", err)
	}
}

// A node has what the revision of its ready pod has.
func TestNodes(t *testing.T) {
	w := newWorld(t, "kubeapiserver", "cp-1", "cp-2", "cp-3")
	w.pod("cp-1", "1", true)
	w.pod("elsewhere", "1", true)
	if n := w.read(); len(n) != 3 || !n["cp-1"].Up || n["cp-1"].Loaded != 0 || len(n["cp-1"].Plugins) > 0 || !n["cp-2"].Unavailable || n["cp-1"].Unavailable || n["cp-3"].Since.Unix() != 2 {
		t.Errorf("before there is a revision: %+v", n)
	}
	w.want(0, 1)
	w.install(2)
	w.pod("cp-1", "2", true)
	w.file(4, 1)
	w.want(4, 1)
	w.install(3)
	w.pod("cp-2", "3", false, 1)
	w.pod("cp-3", "3", true)
	n := w.read()
	if got := n["cp-1"]; !got.Up || got.Loaded != 0 || got.Plugins[1] != w.plugin(1).Config {
		t.Errorf("plugins alone: %+v", got)
	}
	if got := n["cp-2"]; got.Up || got.Unavailable || len(got.Plugins) > 0 || got.Waiting[1] != (core.Waiting{Config: w.plugin(1).Config, Reason: "ImagePullBackOff: no such image"}) {
		t.Errorf("a pod that is not ready: %+v", got)
	}
	if got := n["cp-3"]; !got.Up || got.Loaded != 4 || got.Plugins[1] != w.plugin(1).Config {
		t.Errorf("an encryption configuration: %+v", got)
	}
	// Other credentials make another plugin.
	before := w.plugin(1)
	w.credentials("other")
	w.want(4, 1)
	w.install(4)
	w.pod("cp-3", "4", true)
	if got := w.read()["cp-3"].Plugins[1]; got == before.Config || got != w.plugin(1).Config {
		t.Errorf("other credentials: %+v", got)
	}
	w.pod("cp-3", "5", true)
	if _, err := w.nodes(w.seen); !behind(err) {
		t.Errorf("a revision that was not seen yet: %v", err)
	}
	w.pod("cp-1", "x", true)
	if _, err := w.nodes(w.seen); err == nil || !strings.Contains(err.Error(), `label revision is "x": expected a number`) {
		t.Error(err)
	}
}

// A pod is not that of a node whose entry has the UID of the node before. Without a UID, or without a Node object, nothing is known of a replacement.
func TestNodesReplaced(t *testing.T) {
	for _, c := range []struct {
		entry, node string
		up          bool
	}{{"", "", true}, {"", "b", true}, {"a", "", true}, {"b", "b", true}, {"a", "b", false}} {
		w := newWorld(t, "kubeapiserver", "cp-1")
		status := map[string]any{"nodeName": "cp-1"}
		if c.entry != "" {
			status["nodeUID"] = c.entry
		}
		w.show(w.sources.operator, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": CR}, "status": map[string]any{"nodeStatuses": []any{status}}}})
		w.show(w.sources.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", UID: types.UID(c.node)}})
		w.pod("cp-1", "1", true)
		if n := w.read()["cp-1"]; n.Up != c.up || n.Unavailable == c.up {
			t.Errorf("entry of UID %q, node of UID %q: %+v, want up %t", c.entry, c.node, n, c.up)
		}
	}
}

// Other API servers than kube-apiserver are on all control-plane nodes. Without a node nothing is known.
func TestNodesOfDeployments(t *testing.T) {
	w := newWorld(t, "authentication", "cp-1", "cp-2")
	w.must(w.sources.operator.Replace(nil, ""))
	w.pod("cp-1", "1", true)
	if n := w.read(); len(n) != 2 || !n["cp-1"].Up || !n["cp-2"].Unavailable {
		t.Errorf("%+v", n)
	}
	if _, err := newWorld(t, "kubeapiserver").nodes(w.seen); err == nil {
		t.Error("no node is an answer")
	}
}

// A migration is a new object for each resource, whatever is left from before, and its result is that of the object.
func TestRewrite(t *testing.T) {
	for _, test := range []struct{ condition, want string }{{"Succeeded", ""}, {"Failed", "encryption-migration-core-configmaps: it failed: no quota"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "kubeapiserver")
			w.dynamic.PrependReactor("create", "storageversionmigrations", func(a clienttesting.Action) (bool, runtime.Object, error) {
				u := a.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
				u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Running", "status": "False"}, map[string]any{"type": test.condition, "status": "True", "message": "no quota"}}}
				return false, nil, nil
			})
			for key := range uint64(2) {
				err := migrator{w.dynamic.Resource(revision.Migrations()), revision.Migrations()}.rewrite(t.Context(), w.Encrypted, key)
				if text := fmt.Sprint(err); err == nil != (test.want == "") || !strings.Contains(text, test.want) {
					t.Fatal(err)
				}
			}
			all, err := w.dynamic.Resource(revision.Migrations()).List(t.Context(), metav1.ListOptions{})
			w.must(err)
			if len(all.Items) != 2 || all.Items[1].GetName() != "encryption-migration-core-secrets" || all.Items[1].GetAnnotations()[revision.WriteKeyAnnotation] != "1" {
				t.Errorf("%+v", all.Items)
			}
		})
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
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "kubeapiserver")
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
			if got := (preflightPod{w.Operator}).result(ctx, w.plugin(1).Config, "abc"); got != test.want {
				t.Errorf("%s: %+v", name, got)
			}
			cancel()
			if c, err := ReadConfiguration(&corev1.Secret{Data: data}); err != nil || len(c.Plugins) != 1 || len(data) != 4 {
				t.Errorf("%s: %v, %v", name, err, slices.Sorted(maps.Keys(data)))
			}
			pods, err := w.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			w.must(err)
			if len(pods.Items) > 0 {
				t.Errorf("%s: the pod is left", name)
			}
		})
	}
}

// What was read of an object counts until the object changes.
func TestMemo(t *testing.T) {
	var m memo[int]
	reads := 0
	read := func() (int, error) { reads++; return reads, nil }
	for _, step := range []struct {
		name, version string
		want          int
	}{{"a", "1", 1}, {"a", "1", 1}, {"b", "1", 2}, {"a", "2", 3}, {"a", "2", 3}} {
		if got, err := m.get(&metav1.ObjectMeta{Name: step.name, ResourceVersion: step.version}, read); err != nil || got != step.want {
			t.Errorf("%s %s: %d, %v, want %d", step.name, step.version, got, err, step.want)
		}
	}
}

// The result of a job that another one has replaced is dropped.
func TestJob(t *testing.T) {
	o := newWorld(t, "kubeapiserver").Operator
	var j job[string]
	never := func(string) bool { return false }
	let := make(chan struct{})
	j.start(t.Context(), o, "under way", never, func(context.Context) string { <-let; return "late" })
	j.start(t.Context(), o, "under way again", never, func(ctx context.Context) string { <-let; return "done" })
	j.start(t.Context(), o, "", func(now string) bool { return now == "under way again" }, nil)
	if got := j.get(); got != "under way again" {
		t.Error(got)
	}
	close(let)
	if o.work.Wait(); j.get() != "done" {
		t.Error(j.get())
	}
	if j.forget(); j.get() != "" {
		t.Error(j.get())
	}
}
