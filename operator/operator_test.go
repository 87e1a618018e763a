package operator_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/ci/manifests"
	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/process"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds a boot, and each wait, on a machine that is busy with other things.
const patience = 5 * time.Minute

var (
	kubeAPIServers = schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubeapiservers"}
	apiServers     = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}
)

// cluster is a control plane of two API servers with OpenShift's CRDs, and an administrator.
type cluster struct {
	*testing.T
	cp     *controlplane.ControlPlane
	bench  *bench
	client kubernetes.Interface
	dyn    dynamic.Interface
}

func newCluster(t *testing.T) *cluster {
	binaries := assetstest.Find(t)
	if !binaries.EncryptionPoll {
		t.Skip("needs a kube-apiserver that looks at its encryption configuration more than once a minute")
	}
	dir, err := process.NewRunDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	supervisor := process.New(process.Options{RunDir: dir.Path})
	cp, err := controlplane.New(controlplane.Options{Binaries: binaries, Supervisor: supervisor, Dir: dir.Path, LogDir: t.TempDir(), EncryptionPoll: 200 * time.Millisecond,
		Servers: []controlplane.ServerSpec{{Name: "cp-1"}, {Name: "cp-2"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, cp: cp}
	t.Cleanup(func() {
		if c.bench != nil {
			c.bench.close()
		}
		for _, err := range []error{cp.Close(context.Background()), supervisor.Close(context.Background()), dir.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	c.boot()
	return c
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) boot() {
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	c.must(c.cp.Start(ctx, controlplane.Ready))
	sockets, err := os.MkdirTemp("", "kms") // short: a socket's path has an end
	c.must(err)
	c.Cleanup(func() { os.RemoveAll(sockets) })
	c.bench, err = newBench(c.cp, sockets)
	c.must(err)
	cfg, err := c.cp.AdminConfig(c.cp.Servers()[0].URL())
	c.must(err)
	c.client, err = kubernetes.NewForConfig(cfg)
	c.must(err)
	c.dyn, err = dynamic.NewForConfig(cfg)
	c.must(err)
	c.install(ctx)
}

func (c *cluster) install(ctx context.Context) {
	list, err := crds.List(crds.TechPreview)
	c.must(err)
	var objects []*unstructured.Unstructured
	for _, crd := range list {
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		c.must(err)
		objects = append(objects, &unstructured.Unstructured{Object: u})
	}
	more, err := manifests.Decode([]byte(`
{apiVersion: v1, kind: Namespace, metadata: {name: openshift-config}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: openshift-config-managed}}
---
{apiVersion: v1, kind: Secret, metadata: {name: approle, namespace: openshift-config}, stringData: {role-id: r, secret-id: s}}
---
{apiVersion: config.openshift.io/v1, kind: APIServer, metadata: {name: cluster}, spec: {}}
---
{apiVersion: operator.openshift.io/v1, kind: KubeAPIServer, metadata: {name: cluster}, spec: {managementState: Managed}}
`))
	c.must(err)
	c.must(c.cp.Install(ctx, append(objects, more...)...))
}

// operate runs an operator until end is called.
func (c *cluster) operate(changes ...func(*core.Options)) (end func()) {
	cfg, err := c.cp.AdminConfig(c.cp.Servers()[1].URL())
	c.must(err)
	opts := core.DefaultOptions()
	opts.Interval, opts.Keep, opts.Retry = interval, 3, interval
	for _, change := range changes {
		change(&opts)
	}
	op, err := operator.New(operator.Options{REST: cfg, Component: revision.KubeAPIServer, Resource: kubeAPIServers, Kind: "KubeAPIServer", Core: opts,
		Encrypted: []string{"secrets"}, Executor: c.bench, Clock: clock.RealClock{}, Random: rand.Reader, Log: slog.New(slog.NewTextHandler(c.Output(), nil))})
	c.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- op.Run(ctx) }()
	ended := false
	end = func() {
		if !ended {
			ended = true
			cancel()
			c.must(<-done)
		}
	}
	c.Cleanup(end)
	return end
}

// want sets the APIServer configuration as an administrator does: the API server validates it.
func (c *cluster) want(change func(*configv1.APIServer)) {
	c.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := c.dyn.Resource(apiServers).Get(c.Context(), "cluster", metav1.GetOptions{})
		if err != nil {
			return err
		}
		a := &configv1.APIServer{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a); err != nil {
			return err
		}
		change(a)
		if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(a); err != nil {
			return err
		}
		for _, field := range []string{"status"} {
			delete(u.Object, field)
		}
		u.SetManagedFields(nil)
		_, err = c.dyn.Resource(apiServers).Update(c.Context(), u, metav1.UpdateOptions{})
		return err
	})
	c.must(err)
}

// await returns when ok holds.
func (c *cluster) await(what string, ok func() string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		problem := ok()
		if problem == "" {
			return
		}
		select {
		case <-ctx.Done():
			c.Fatalf("%s: %s", what, problem)
		case <-ticker.C:
		}
	}
}

// condition is status, reason and message.
func (c *cluster) condition(kind string) (status, reason, message string) {
	u, err := c.dyn.Resource(kubeAPIServers).Get(c.Context(), "cluster", metav1.GetOptions{})
	if err != nil {
		return "", "", err.Error()
	}
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range all {
		m, _ := one.(map[string]any)
		if m["type"] == kind {
			return fmt.Sprint(m["status"]), fmt.Sprint(m["reason"]), fmt.Sprint(m["message"])
		}
	}
	return "", "", "there is no condition " + kind
}

const objects = 30

func (c *cluster) write() {
	for i := range objects {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("data-%02d", i), Namespace: "default"}, StringData: map[string]string{"value": fmt.Sprint(i)}}
		_, err := c.client.CoreV1().Secrets("default").Create(c.Context(), s, metav1.CreateOptions{})
		c.must(err)
	}
}

// stored says which object of all is not stored with a prefix in etcd, or cannot be read through some API server.
func (c *cluster) stored(prefix string) string {
	transport := &http.Transport{DisableKeepAlives: true}
	for i := range objects {
		name := fmt.Sprintf("data-%02d", i)
		raw, err := live.ReadEtcdGateway(c.Context(), transport, "http://"+c.cp.Etcd().Addr(), "/registry/secrets/default/"+name)
		if err != nil || !strings.HasPrefix(string(raw), prefix) {
			return fmt.Sprintf("%s begins with %.30q in etcd (%v), expected %q", name, raw, err, prefix)
		}
		for node, n := range c.bench.nodes {
			s, err := n.client.CoreV1().Secrets("default").Get(c.Context(), name, metav1.GetOptions{})
			if err != nil || string(s.Data["value"]) != fmt.Sprint(i) {
				return fmt.Sprintf("%s through %s: %v", name, node, err)
			}
		}
	}
	return ""
}

// arrives waits until everything is stored with a prefix and the operator is at rest, with some plugins on each node.
func (c *cluster) arrives(prefix string, plugins int) {
	c.Helper()
	began := time.Now()
	c.await("at rest with "+prefix, func() string {
		if status, reason, message := c.condition(core.ConditionProgressing); status != "False" {
			return fmt.Sprintf("%s %s %s", status, reason, message)
		}
		nodes, err := c.bench.Nodes(c.Context())
		if err != nil {
			return err.Error()
		}
		for name, n := range nodes {
			if len(n.Plugins) != plugins || len(n.Reporter) != plugins {
				return fmt.Sprintf("%s has plugins %v, and its reporter %v", name, n.Plugins, n.Reporter)
			}
		}
		return c.stored(prefix)
	})
	c.Logf("%s after %v", prefix, time.Since(began).Round(100*time.Millisecond))
}

func vault(a *configv1.APIServer) {
	a.Annotations = nil
	a.Spec.Encryption = configv1.APIServerEncryption{Type: configv1.EncryptionTypeKMS, KMS: configv1.KMSPluginConfig{Type: configv1.VaultKMSProvider, Vault: configv1.VaultKMSPluginConfig{
		KMSPluginImage: "registry.example.com/kms/vault@sha256:1111111111111111111111111111111111111111111111111111111111111111",
		VaultAddress:   "https://vault.example.com:8200", VaultKeyPath: "transit/keys/openshift",
		Authentication: configv1.VaultAuthentication{Type: configv1.VaultAuthenticationTypeAppRole,
			AppRole: configv1.VaultAppRoleAuthentication{Secret: configv1.VaultSecretReference{Name: "approle"}}},
	}}}
}

func plain(t configv1.EncryptionType) func(*configv1.APIServer) {
	return func(a *configv1.APIServer) {
		a.Annotations, a.Spec.Encryption = nil, configv1.APIServerEncryption{Type: t}
	}
}

// TestSwitches goes through the types of encryption on real API servers: real data, real plugins, real reporters.
func TestSwitches(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane")
	}
	c := newCluster(t)
	end := c.operate()
	c.write()
	c.arrives("k8s\x00", 0)

	c.want(plain("aescbc"))
	c.arrives("k8s:enc:aescbc:v1:1:", 0)

	c.want(vault)
	c.arrives("k8s:enc:kms:v2:kms-2:", 1)

	c.want(func(a *configv1.APIServer) {
		c.must(config.Annotate(a, "AWS", map[string]any{"keyARN": "key", "region": "us-east-1"}))
	})
	c.await("an invalid configuration is told", func() string {
		if status, reason, message := c.condition(core.ConditionConfig); status != "True" || reason != core.ReasonInvalid || !strings.Contains(message, "keyARN") {
			return fmt.Sprintf("%s %s %s", status, reason, message)
		}
		return ""
	})
	c.arrives("k8s:enc:kms:v2:kms-2:", 1)
	c.bench.speak(publish.HealthReports) // reporters that are started from now on

	// From one KMS to another, with an operator that dies on the way.
	c.want(func(a *configv1.APIServer) {
		c.must(config.Annotate(a, "GCP", map[string]any{"keyName": "projects/p/locations/l/keyRings/r/cryptoKeys/other"}))
	})
	c.await("two plugins on a node", func() string {
		nodes, err := c.bench.Nodes(c.Context())
		if err == nil && len(nodes["cp-1"].Plugins) == 2 {
			return ""
		}
		return fmt.Sprintf("%+v %v", nodes, err)
	})
	end()
	c.operate()
	c.arrives("k8s:enc:kms:v2:kms-3:", 1)

	c.edit("encryption-key-kube-apiserver-3", "rot13")
	c.await("a key that cannot be read is told", func() string {
		if status, _, message := c.condition(core.ConditionConfig); status != "True" || !strings.Contains(message, `type "rot13" is unknown`) {
			return fmt.Sprintf("%s %s", status, message)
		}
		return ""
	})
	c.edit("encryption-key-kube-apiserver-3", string(config.KMS))

	c.want(plain("identity"))
	c.arrives("k8s\x00", 0)
}

// edit changes the type of a key by hand.
func (c *cluster) edit(name, mode string) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"encryption.apiserver.operator.openshift.io/mode":%q}}}`, mode)
	_, err := c.client.CoreV1().Secrets(revision.Namespace).Patch(c.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err)
}
