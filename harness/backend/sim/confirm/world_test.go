package confirm_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what takes seconds on a machine with nothing else to do.
const patience = 3 * time.Minute

// node is an API server with its plugin.
type node struct {
	t testing.TB
	*controlplane.APIServer
	*plugin
	admin  *kubernetes.Clientset
	config *rest.Config
}

// newWorld boots an API server for each plugin. Those with a plugin that is not served live, and are not ready.
func newWorld(t testing.TB, poll time.Duration, plugins ...*plugin) (*controlplane.ControlPlane, []*node) {
	t.Helper()
	if os.Getenv("KMSHARNESS_CONFIRM") == "" {
		t.Skip("takes minutes, and needs etcd and kube-apiserver: make confirm")
	}
	binaries := assetstest.Find(t)
	if poll > 0 && !binaries.EncryptionPoll {
		t.Skip("this kube-apiserver looks at its encryption configuration once a minute")
	}
	dir, err := process.NewRunDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := controlplane.Options{Binaries: binaries, LogDir: t.TempDir(), Dir: dir.Path, EncryptionPoll: poll, Supervisor: process.New(process.Options{RunDir: dir.Path})}
	for i, p := range plugins {
		s := controlplane.ServerSpec{Name: fmt.Sprintf("cp-%d", i+1)}
		if p != nil {
			s.Encryption = p.encryption()
		}
		o.Servers = append(o.Servers, s)
	}
	cp, err := controlplane.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{cp.Close(context.Background()), o.Supervisor.Close(context.Background()), dir.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := cp.Start(ctx, controlplane.ReadyWithoutKMS); err != nil {
		t.Fatal(err)
	}
	var all []*node
	for i, s := range cp.Servers() {
		all = append(all, newNode(t, cp, s, plugins[i]))
	}
	return cp, all
}

func (p *plugin) encryption() controlplane.Encryption {
	return controlplane.Encryption{Providers: []controlplane.Provider{p.provider("1"), controlplane.Identity()}}
}

func (p *plugin) provider(keyID string) controlplane.Provider {
	return controlplane.KMS(controlplane.KMSProvider{KeyID: keyID, Socket: p.socket})
}

func newNode(t testing.TB, cp *controlplane.ControlPlane, s *controlplane.APIServer, p *plugin) *node {
	t.Helper()
	config, err := cp.AdminConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.CloseIdleConnections)
	admin, err := kubernetes.NewForConfigAndClient(config, http)
	if err != nil {
		t.Fatal(err)
	}
	return &node{t, s, p, admin, config}
}

func (n *node) write(name string) error {
	_, err := n.admin.CoreV1().Secrets("default").Create(n.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"a": "b"}}, metav1.CreateOptions{})
	return err
}

func (n *node) read(name string) error {
	_, err := n.admin.CoreV1().Secrets("default").Get(n.t.Context(), name, metav1.GetOptions{})
	return err
}

// health is what /healthz/kms-providers says.
func (n *node) health() string {
	text, err := n.admin.RESTClient().Get().AbsPath("/healthz/kms-providers").DoRaw(n.t.Context())
	if err == nil && string(text) == "ok" {
		return "ok"
	}
	return string(text)
}

// says waits until something says what matches.
func (n *node) says(what string, within time.Duration, want string, ask func() string) time.Duration {
	n.t.Helper()
	began, last := time.Now(), ""
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for match := regexp.MustCompile(want); time.Since(began) < within; <-tick.C {
		if last = ask(); match.MatchString(last) {
			return time.Since(began)
		}
	}
	n.t.Errorf("%s: %q, expected within %v what matches %q", what, last, within, want)
	return within
}

func text(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// pass waits until an instant, with nothing to be seen in between.
func pass(t testing.TB, until time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
