package controlplane_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/internal/host"
)

func clientset(t *testing.T, config *rest.Config, err error) *kubernetes.Clientset {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = patience
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.CloseIdleConnections)
	c, err := kubernetes.NewForConfigAndClient(config, http)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// create writes a config map and says how that went.
func create(t *testing.T, c *kubernetes.Clientset, name string, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := c.CoreV1().ConfigMaps("default").Create(ctx, configMap(name), metav1.CreateOptions{})
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// One control plane serves all these, because each boot takes seconds.
func TestLifeCycle(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane: make nightly")
	}
	w := newWorld(t, nil, specs(2)...)
	w.start(t, controlplane.Ready)
	one, two := w.Servers()[0], w.Servers()[1]
	config, err := w.AdminConfig(one.URL)
	admin := clientset(t, config, err)

	t.Run("identities", func(t *testing.T) { testIdentities(t, w, two) })
	t.Run("audit log", func(t *testing.T) { testAudit(t, admin, one) })
	t.Run("client link", func(t *testing.T) { testClientLink(t, w, one) })
	t.Run("etcd link", func(t *testing.T) { testEtcdLink(t, one, admin) })
	t.Run("pause", func(t *testing.T) { testPause(t, one, admin) })
	t.Run("kill and restart", func(t *testing.T) { testKill(t, one, admin) })
	t.Run("etcd restart keeps data", func(t *testing.T) { testEtcdRestart(t, w, admin) })
	t.Run("replace a node", func(t *testing.T) { testReplace(t, w, two) })
}

func testIdentities(t *testing.T, w world, s *controlplane.APIServer) {
	kubeconfig, err := w.Kubeconfig("jane", []string{"testers"}, s.URL)
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	jane := clientset(t, config, err)
	_, err = jane.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
		t.Errorf("jane listed secrets: %v", err)
	}
}

func testAudit(t *testing.T, admin *kubernetes.Clientset, s *controlplane.APIServer) {
	must(t, create(t, admin, "audited", patience))
	log, err := os.ReadFile(s.AuditLog) // at once: it is written before the answer
	must(t, err)
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb      string
			ObjectRef struct{ Name string }
		}
		must(t, json.Unmarshal(lines.Bytes(), &event))
		if event.Verb == "create" && event.ObjectRef.Name == "audited" {
			return
		}
	}
	t.Errorf("%s does not have the write", s.AuditLog)
}

func testClientLink(t *testing.T, w world, s *controlplane.APIServer) {
	link, err := netfault.NewLink(host.Host{}, "client to "+s.Name, s.Addr)
	must(t, err)
	defer func() { must(t, link.Close()) }()
	config, err := w.AdminConfig("https://" + link.Addr())
	c := clientset(t, config, err)
	must(t, create(t, c, "linked", patience))
	must(t, link.Set(netfault.Fault{Mode: netfault.Cut}))
	if err := create(t, c, "cut", 300*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write through a cut link: %v", err)
	}
	must(t, link.Set(netfault.Fault{}))
	must(t, create(t, c, "healed", patience))
}

func testEtcdLink(t *testing.T, s *controlplane.APIServer, admin *kubernetes.Clientset) {
	must(t, s.SetEtcdLink(netfault.Fault{Mode: netfault.Cut}))
	if err := create(t, admin, "without-etcd", 500*time.Millisecond); err == nil {
		t.Error("a write without etcd succeeded")
	}
	must(t, s.SetEtcdLink(netfault.Fault{}))
	must(t, s.WaitReady(t.Context(), controlplane.Ready))
	must(t, create(t, admin, "with-etcd", patience))
}

func testPause(t *testing.T, s *controlplane.APIServer, admin *kubernetes.Clientset) {
	must(t, s.Pause(t.Context()))
	if err := create(t, admin, "paused", 300*time.Millisecond); err == nil {
		t.Error("a write to a paused API server succeeded")
	}
	must(t, s.Resume(t.Context()))
	must(t, s.WaitReady(t.Context(), controlplane.Ready))
	must(t, create(t, admin, "resumed", patience))
}

func testKill(t *testing.T, s *controlplane.APIServer, admin *kubernetes.Clientset) {
	addr := s.Addr
	must(t, s.Kill(t.Context()))
	if s.Status().Running() {
		t.Error("running after Kill")
	}
	if err := create(t, admin, "killed", time.Second); err == nil {
		t.Error("a write to a killed API server succeeded")
	}
	must(t, errors.Join(s.Stop(t.Context()), s.Start(t.Context(), controlplane.Ready)))
	if s.Addr != addr {
		t.Errorf("moved from %s to %s", addr, s.Addr)
	}
	must(t, create(t, admin, "restarted", patience))
}

func testEtcdRestart(t *testing.T, w world, admin *kubernetes.Clientset) {
	must(t, w.Etcd().Kill(t.Context()))
	must(t, w.Etcd().Start(t.Context()))
	for _, s := range w.Servers() {
		must(t, s.WaitReady(t.Context(), controlplane.Ready))
	}
	_, err := admin.CoreV1().ConfigMaps("default").Get(t.Context(), "audited", metav1.GetOptions{})
	must(t, err)
}

func testReplace(t *testing.T, w world, old *controlplane.APIServer) {
	must(t, w.Remove(t.Context(), old.Name))
	if exit, ok := old.Process().Exit(); !ok || exit.Forced || exit.Code != 0 {
		t.Errorf("the API server did not stop cleanly: %v, %v", exit, ok)
	}
	if _, err := w.Server(old.Name); !errors.Is(err, controlplane.ErrNoServer) {
		t.Error(err)
	}
	again, err := w.Add(controlplane.ServerSpec{Name: old.Name})
	must(t, err)
	if _, err := w.Add(controlplane.ServerSpec{Name: old.Name}); !errors.Is(err, controlplane.ErrServerExists) {
		t.Error(err)
	}
	must(t, again.Start(t.Context(), controlplane.Ready))
	config, err := w.AdminConfig(again.URL)
	must(t, create(t, clientset(t, config, err), "replaced", patience))
}

// With a plugin that never comes, an API server starts and serves clear text, and is not ready.
func TestColdStartWithoutPlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane: make nightly")
	}
	dead := controlplane.Encryption{Providers: []controlplane.Provider{controlplane.KMS(controlplane.KMSProvider{KeyID: "1", Socket: "/nonexistent/kms-1.sock"})}}
	w := newWorld(t, nil, controlplane.ServerSpec{Name: "cp-1", Encryption: dead})
	w.start(t, controlplane.Live)
	s := w.Servers()[0]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // more than the 3 s that an API server waits for a plugin
	defer cancel()
	if err := s.WaitReady(ctx, controlplane.Ready); err == nil || !strings.Contains(err.Error(), "kms-providers") {
		t.Errorf("ready without its plugin: %v", err)
	}
	config, err := w.AdminConfig(s.URL)
	must(t, create(t, clientset(t, config, err), "clear", patience))
}

var reloaded = regexp.MustCompile(`automatic_reloads_total\{[^}]*status="success"`)

// A new encryption configuration is loaded soon when the binary can be told to look often.
func TestEncryptionReload(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane: make nightly")
	}
	if !assetstest.Find(t).EncryptionPoll {
		t.Skip("this kube-apiserver looks once a minute")
	}
	const poll = 200 * time.Millisecond
	w := newWorld(t, func(o *controlplane.Options) { o.EncryptionPoll = poll }, specs(1)...)
	w.start(t, controlplane.Ready)
	s := w.Servers()[0]
	must(t, s.SetEncryption(controlplane.Encryption{Resources: []string{"secrets", "configmaps"}}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	config, err := w.AdminConfig(s.URL)
	admin := clientset(t, config, err)
	must(t, s.Process().WaitReady(ctx, poll, func(ctx context.Context) error {
		metrics, err := admin.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err == nil && !reloaded.Match(metrics) {
			err = errors.New("not reloaded")
		}
		return err
	}))
}
