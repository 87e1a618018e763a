package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/controlplane/provider"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// patience bounds a boot, and each wait.
const patience = 3 * time.Minute

func kubeAPIServer() operator.APIServer {
	a, err := operator.APIServerOf("kubeapiserver")
	if err != nil {
		panic(err)
	}
	return a
}

// pods are those of two nodes, in memory. They complain of what would lose data.
type pods struct {
	*testing.T
	client  kubernetes.Interface
	dynamic dynamic.Interface

	mu       sync.Mutex
	plugins  map[string][]uint64 // that run, by node
	named    map[string][]uint64 // keys in the files of API servers
	denied   bool                // the next check fails
	migrated []string
	claims   int // how often the operator said that everything is migrated
}

func (p *pods) Anew() bool { return false }

func (p *pods) Nodes(context.Context) (map[string]operand.Node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]operand.Node{}
	for name, ids := range p.plugins {
		out[name] = operand.Node{Up: true, Plugins: slices.Clone(ids)}
	}
	return out, nil
}

// Install gives a pod everything at once.
func (p *pods) Install(_ context.Context, node string, r operand.Revision) error {
	named, _, err := revision.KeysInFile(r.File)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range named {
		if !slices.Contains(r.KeyIDs(), id) && strings.Contains(string(r.File), fmt.Sprintf("kms-%d.sock", id)) {
			p.Errorf("%s gets a file with key %d, whose plugin it does not get", node, id)
		}
	}
	p.plugins[node], p.named[node] = r.KeyIDs(), named
	return nil
}

// Check is the program of a pre-flight pod, which writes its result.
func (p *pods) Check(ctx context.Context, pod *corev1.Pod, _ config.Plugin) (end corev1.ContainerStateTerminated) {
	p.mu.Lock()
	defer p.mu.Unlock()
	result := core.Preflight{Hash: pod.Annotations[operator.PreflightHash], OK: true, KEK: "kek-1"}
	if p.denied {
		result.OK, result.KEK, result.Message, end.ExitCode = false, "", "permission denied", 1
	}
	pod = pod.DeepCopy()
	pod.Status.Conditions = operator.PreflightConditions(result, metav1.Now())
	if _, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		p.Log(err) // the operator waits for a result in vain
	}
	return end
}

func (p *pods) Migrates(schema.GroupVersionResource) bool { return true }

func (p *pods) Migrate(_ context.Context, r schema.GroupVersionResource) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.migrated = append(p.migrated, r.Resource)
	return nil
}

func (p *pods) Migrated(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims++
	return nil
}

// report is what reporters do in every interval, until ctx ends.
func (p *pods) report(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		nodes, _ := p.Nodes(ctx)
		for name, n := range nodes {
			var items []any
			for _, id := range n.Plugins {
				items = append(items, map[string]any{"nodeName": name, "keyID": fmt.Sprint(id), "status": "Healthy", "remoteKeyID": "kek-1", "lastCheckedTime": contract.FormatTime(time.Now())})
			}
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": map[string]any{"name": "cluster"}, "status": map[string]any{}}}
			if len(items) > 0 {
				u.Object["status"] = map[string]any{"encryptionStatus": map[string]any{"healthReports": items}}
			}
			_, err := p.dynamic.Resource(kubeAPIServer().Resource).ApplyStatus(ctx, "cluster", u, metav1.ApplyOptions{FieldManager: contract.FieldManager(name), Force: true})
			if err != nil && ctx.Err() == nil {
				p.Error(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// world is a real API server, the cluster around an operator, and the operator.
type world struct {
	*testing.T
	kubeconfig string
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	pods       *pods

	mu      sync.Mutex
	decided history.Decision
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func start(t *testing.T) *world {
	if testing.Short() {
		t.Skip("it boots a control plane")
	}
	assetstest.Find(t)
	w := &world{T: t}
	p := provider.NewProvider()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	w.kubeconfig, err = p.Create(ctx)
	w.must(err)
	t.Cleanup(func() { w.must(p.Destroy(context.Background())) })
	rest := p.KubernetesRestConfig()
	list, err := crds.List(crds.TechPreview)
	w.must(err)
	_, err = envtest.InstallCRDs(rest, envtest.CRDInstallOptions{CRDs: list})
	w.must(err)
	w.client, err = kubernetes.NewForConfig(rest)
	w.must(err)
	w.dynamic, err = dynamic.NewForConfig(rest)
	w.must(err)
	w.pods = &pods{T: t, client: w.client, dynamic: w.dynamic, named: map[string][]uint64{}, plugins: map[string][]uint64{"cp-1": nil, "cp-2": nil}}
	for _, text := range []string{
		`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-config"}}`,
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "approle", "namespace": "openshift-config"}, "stringData": {"role-id": "r", "secret-id": "s"}}`,
		`{"apiVersion": "config.openshift.io/v1", "kind": "APIServer", "metadata": {"name": "cluster"}, "spec": {}}`,
		`{"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": {"name": "cluster"}, "spec": {"managementState": "Managed"}}`,
	} {
		var u unstructured.Unstructured
		w.must(u.UnmarshalJSON([]byte(text)))
		gvk := u.GroupVersionKind()
		r := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"}
		_, err := w.dynamic.Resource(r).Namespace(u.GetNamespace()).Create(ctx, &u, metav1.CreateOptions{})
		w.must(err)
	}
	options := operand.Options{APIServer: kubeAPIServer(), Client: w.client, Dynamic: w.dynamic, Pods: w.pods, Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Observed: func(d *history.Decision) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.decided = *d
		}}
	w.must(operand.Prepare(ctx, options))
	w.permit()
	cluster := operand.New(options)
	w.background(func(ctx context.Context) { cluster.Run(ctx) })
	w.background(w.pods.report)
	return w
}

// permit installs the permissions of the operator, and lets kubeconfig speak for nobody but it.
func (w *world) permit() {
	objects, err := manifests.EncryptionOperator()
	w.must(err)
	for _, o := range objects {
		r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		_, err := w.dynamic.Resource(r).Namespace(o.GetNamespace()).Create(w.Context(), o, metav1.CreateOptions{})
		w.must(err)
	}
	config, err := clientcmd.LoadFromFile(w.kubeconfig)
	w.must(err)
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + kubeAPIServer().OperatorNamespace + ":encryption-operator"
	}
	w.kubeconfig = filepath.Join(w.TempDir(), "operator.kubeconfig")
	w.must(clientcmd.WriteToFile(*config, w.kubeconfig))
}

// background runs something until the test ends, or until end is called.
func (w *world) background(run func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	end = func() { cancel(); <-done }
	w.Cleanup(end)
	return end
}

// operate runs a replica of the operator until end is called.
func (w *world) operate(identity string) (end func()) {
	opts, err := parse([]string{"--kubeconfig", w.kubeconfig, "--interval=2s", "--settle=0s", "--retry=1s", "--keep=1", "--leader-elect", "--leader-elect-identity", identity,
		"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=200ms"})
	w.must(err)
	return w.background(func(ctx context.Context) {
		if err := operate(ctx, host.Host{}, opts, io.Discard); err != nil {
			w.Error(err)
		}
	})
}

// leads waits until a replica leads.
func (w *world) leads(identity string) {
	w.Helper()
	w.await(identity+" leads", func() string {
		lease, err := w.client.CoordinationV1().Leases(kubeAPIServer().OperatorNamespace).Get(w.Context(), "encryption-operator-lock", metav1.GetOptions{})
		if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == identity {
			return ""
		}
		return fmt.Sprint(lease.Spec.HolderIdentity, " ", err)
	})
}

func (w *world) request(encryption string) {
	w.Helper()
	_, err := w.dynamic.Resource(schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}).Patch(w.Context(), "cluster", types.MergePatchType,
		[]byte(`{"spec": {"encryption": `+encryption+`}}`), metav1.PatchOptions{})
	w.must(err)
}

// await returns when there is no problem left.
func (w *world) await(what string, problem func() string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for text := problem(); text != ""; text = problem() {
		select {
		case <-ctx.Done():
			w.Fatalf("%s: %s", what, text)
		case <-ticker.C:
		}
	}
	w.Log(what)
}

// reaches waits until the harness sees that a key is the newest, and that nothing is under way, by the objects alone.
func (w *world) reaches(key uint64, plugins ...uint64) {
	w.Helper()
	w.await(fmt.Sprintf("key %d", key), func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		nodes, _ := w.pods.Nodes(w.Context())
		for name, n := range nodes {
			if got := slices.Sorted(slices.Values(n.Plugins)); !slices.Equal(got, plugins) {
				return fmt.Sprintf("%s has plugins %v; %+v", name, got, w.decided)
			}
		}
		if w.decided.Key != key || w.decided.Stage != "" {
			return fmt.Sprintf("%+v", w.decided)
		}
		return ""
	})
}

func (w *world) condition(kind string) string {
	u, err := w.dynamic.Resource(kubeAPIServer().Resource).Get(w.Context(), "cluster", metav1.GetOptions{})
	w.must(err)
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range all {
		if c, _ := one.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c["status"], " ", c["message"])
		}
	}
	return ""
}

// is waits until status and message of a condition begin with a text.
func (w *world) is(kind, text string) {
	w.Helper()
	w.await(kind+" is "+text, func() string {
		if got := w.condition(kind); !strings.HasPrefix(got, text) {
			return "it is " + got
		}
		return ""
	})
}

func vault(key string) string {
	return `{"type": "KMS", "kms": {"type": "Vault", "vault": {"kmsPluginImage": "registry.example.com/vault@sha256:` + strings.Repeat("0", 64) + `",
		"vaultAddress": "https://vault.example.com:8200", "vaultKeyPath": "v1/transit/keys/` + key + `", "authentication": {"type": "AppRole", "appRole": {"secret": {"name": "approle"}}}}}}`
}

// The operator switches through every type behind the door of an operator under test. When its leader ends in a switch, the replica that stands by goes on.
func TestSwitches(t *testing.T) {
	w := start(t)
	end := w.operate("first")
	w.leads("first")
	w.operate("second")
	w.request(`{"type": "aescbc"}`)
	w.reaches(1)
	w.is("Encrypted", "True ")

	w.pods.mu.Lock()
	w.pods.denied = true
	w.pods.mu.Unlock()
	w.request(vault("one"))
	w.is(core.ConditionPreflight, "True permission denied")
	w.pods.mu.Lock()
	w.pods.denied = false
	w.pods.mu.Unlock()
	w.reaches(2, 2)

	w.request(vault("two"))
	w.await("two plugins", func() string {
		nodes, _ := w.pods.Nodes(t.Context())
		if len(nodes["cp-1"].Plugins) == 2 {
			return ""
		}
		return fmt.Sprintf("%+v", nodes)
	})
	w.leads("first")
	end()
	w.leads("second")
	w.reaches(3, 3)

	w.request(`{"type": "identity", "kms": null}`)
	w.reaches(4)
	w.is("Encrypted", "False everything is stored in clear text")
	w.await("keys are pruned, with their finalizers", func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if slices.Equal(w.decided.Keys, []uint64{3, 4}) {
			return ""
		}
		return fmt.Sprint(w.decided.Keys)
	})
	if got := slices.Compact(slices.Sorted(slices.Values(w.pods.migrated))); !slices.Equal(got, []string{"configmaps", "secrets"}) {
		t.Errorf("%v were migrated", got)
	}
	if w.pods.claims == 0 {
		t.Error("the annotation of no key said so")
	}
	key, err := w.client.CoreV1().Secrets(revision.Namespace).Get(t.Context(), "encryption-key-openshift-kube-apiserver-3", metav1.GetOptions{})
	w.must(err)
	if key.Annotations["encryption.apiserver.operator.openshift.io/migrated-remote-key-id"] != "kek-1" || key.Annotations[revision.ResourcesAnnotation] == "" {
		t.Errorf("%+v", key.ObjectMeta)
	}
}
