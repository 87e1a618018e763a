package encryption_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/encryption"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
)

// world is an API server's encryption and the project's own fake plugin, which is started by its own command line.
type world struct {
	*testing.T
	dir     string
	network *network.Network
	*encryption.Encryption
	programs sync.WaitGroup
	output   bytes.Buffer
}

func secrets() schema.GroupResource { return schema.GroupResource{Resource: "secrets"} }

const configuration = `
kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [secrets]
  providers:
  - kms: {apiVersion: v2, name: kms-1, endpoint: "unix://DIR/kms-1.sock", timeout: 3s}
  - identity: {}
`

func in(t *testing.T, f func(ctx context.Context, w *world)) {
	t.Helper()
	dir := t.TempDir()
	bubble.Test(t, 1, func(t *testing.T) {
		ctx, end := context.WithCancel(context.Background())
		w := &world{T: t, dir: dir, network: network.New(1)}
		defer func() {
			end()
			w.programs.Wait()
			w.network.Close()
			if t.Failed() {
				t.Log(w.output.String())
			}
		}()
		f(ctx, w)
	})
}

// plugin runs fake-kms-plugin until the function that it returns is called.
func (w *world) plugin(ctx context.Context, args ...string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	w.programs.Go(func() {
		defer close(over)
		all := append([]string{"serve", "--listen=unix://" + w.dir + "/kms-1.sock", "--control=unix://" + w.dir + "/control.sock", "--node=cp-1"}, args...)
		if code := cli.Main(ctx, w.network.Host("plugin"), all, io.Discard, &w.output); code != 0 {
			w.Errorf("fake-kms-plugin: exit %d", code)
		}
	})
	return func() { cancel(); <-over }
}

// load begins to encrypt, with KMS or as the text says.
func (w *world) load(ctx context.Context, text string) {
	w.Helper()
	file := filepath.Join(w.dir, "encryption.yaml")
	w.write(text)
	var err error
	if w.Encryption, err = encryption.Load(ctx, w.network.Host("apiserver"), file, "cp-1", encryption.Lines{}, encryption.Around{}); err != nil {
		w.Fatal(err)
	}
	w.programs.Go(func() { w.Reload(ctx, encryption.DefaultPoll) })
}

func (w *world) write(text string) {
	w.Helper()
	file := filepath.Join(w.dir, "encryption.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", w.dir)), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *world) encrypt(ctx context.Context) ([]byte, error) {
	return w.Transformer(secrets()).TransformToStorage(ctx, []byte("text"), value.DefaultContext("/registry/secrets/a/b"))
}

// rotates expects what was encrypted before a rotation to be stale within a time after it.
func (w *world) rotates(ctx context.Context, old []byte, within time.Duration) {
	w.Helper()
	c, err := client.New(w.network.Host("harness"), "unix://"+w.dir+"/control.sock", "")
	if err != nil {
		w.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Rotate(ctx, control.RotateRequest{}); err != nil {
		w.Fatal(err)
	}
	time.Sleep(within)
	if _, stale, err := w.Transformer(secrets()).TransformFromStorage(ctx, old, value.DefaultContext("/registry/secrets/a/b")); err != nil || !stale {
		w.Errorf("stale %v, %v", stale, err)
	}
}

func (w *world) ready(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		w.Fatal(err)
	}
	return w.Ready(r)
}

// Writes go on for three minutes without a plugin, and are refused in kube-apiserver's own words after that; with the plugin they come back.
func TestOutage(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		end := w.plugin(ctx, "--state="+w.dir)
		time.Sleep(time.Second)
		w.load(ctx, configuration)
		data, err := w.encrypt(ctx)
		if err != nil || !bytes.HasPrefix(data, []byte("k8s:enc:kms:v2:kms-1:")) {
			w.Fatalf("%q, %v", data, err)
		}
		began := time.Now()
		end()
		var refused time.Duration
		for refused == 0 && time.Since(began) < 10*time.Minute {
			time.Sleep(time.Second)
			if _, err = w.encrypt(ctx); err != nil {
				refused = time.Since(began)
			}
		}
		if refused < 2*time.Minute || refused > 4*time.Minute || !strings.Contains(err.Error(), "expired at") {
			w.Errorf("refused after %v: %v", refused, err)
		}
		if w.ready(ctx) == nil {
			w.Error("ready without a plugin")
		}
		w.plugin(ctx, "--state="+w.dir)
		time.Sleep(2 * time.Minute)
		if _, err := w.encrypt(ctx); err != nil {
			w.Error(err)
		}
		if err := w.ready(ctx); err != nil {
			w.Error(err)
		}
		if text, _, err := w.Transformer(secrets()).TransformFromStorage(ctx, data, value.DefaultContext("/registry/secrets/a/b")); err != nil || string(text) != "text" {
			w.Errorf("%q, %v", text, err)
		}
	})
}

// A new configuration is noticed within a minute, and a rotation within one more.
func TestReloadAndRotation(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.plugin(ctx)
		time.Sleep(time.Second)
		w.load(ctx, strings.Replace(configuration, "kms: {apiVersion: v2, name: kms-1, endpoint: \"unix://DIR/kms-1.sock\", timeout: 3s}\n  - ", "", 1))
		if data, err := w.encrypt(ctx); err != nil || string(data) != "text" {
			w.Fatalf("%q, %v", data, err)
		}
		w.write(configuration)
		time.Sleep(61 * time.Second)
		old, err := w.encrypt(ctx)
		if err != nil || !bytes.HasPrefix(old, []byte("k8s:enc:kms:v2:kms-1:")) {
			w.Fatalf("%q, %v", old, err)
		}
		w.rotates(ctx, old, 2*time.Minute)
	})
}

// A slow plugin that starts after the configuration was loaded is used in the end, while two clients poll readyz: no goroutine waits for
// kube-apiserver's mutex, which would stop the clock. A health check also notices a rotation before the probe of each minute does.
func TestLatePlugin(t *testing.T) {
	for _, comes := range []time.Duration{5 * time.Second, 59 * time.Second, 60 * time.Second, 61 * time.Second, 70 * time.Second} {
		in(t, func(ctx context.Context, w *world) {
			w.load(ctx, configuration)
			asking, end := context.WithCancel(ctx)
			defer end()
			for range 2 {
				w.programs.Go(func() {
					for asking.Err() == nil {
						_ = w.ready(asking)
						time.Sleep(time.Second)
					}
				})
			}
			time.Sleep(comes)
			w.plugin(ctx, "--profile=thales")
			time.Sleep(time.Minute) // gRPC's pause before it dials again grows
			old, err := w.encrypt(ctx)
			if err != nil {
				w.Fatalf("a plugin that came after %v: %v", comes, err)
			}
			w.rotates(ctx, old, 25*time.Second)
		})
	}
}

// A plugin that comes late gives a data key while kube-apiserver does not accept its answers. kube-apiserver goes on with both probe loops then.
func TestLatePluginIsUnhealthy(t *testing.T) {
	for _, with := range []string{"healthz:for=2m", "version:for=2m", "ciphertext-oversized:for=2m"} {
		in(t, func(ctx context.Context, w *world) {
			w.load(ctx, configuration)
			asking, end := context.WithCancel(ctx)
			defer end()
			w.programs.Go(func() {
				for asking.Err() == nil {
					_ = w.ready(asking)
					time.Sleep(4 * time.Second)
				}
			})
			time.Sleep(20 * time.Second)
			w.plugin(ctx, "--profile=thales", "--fault="+with)
			time.Sleep(4 * time.Minute)
			if _, err := w.encrypt(ctx); err != nil {
				t.Errorf("%s: %v", with, err)
			}
		})
	}
}

// A late plugin is used although nobody polls readyz.
func TestLatePluginWithoutHealthChecks(t *testing.T) {
	for _, comes := range []time.Duration{5 * time.Second, 59 * time.Second, 60 * time.Second, 61 * time.Second, 70 * time.Second} {
		for _, timeout := range []string{"3s", "10s"} {
			in(t, func(ctx context.Context, w *world) {
				w.load(ctx, strings.Replace(configuration, "3s", timeout, 1))
				time.Sleep(comes)
				w.plugin(ctx)
				time.Sleep(90 * time.Second)
				if _, err := w.encrypt(ctx); err != nil {
					t.Errorf("a plugin with a timeout of %s that came after %v: %v", timeout, comes, err)
				}
			})
		}
	}
}

func TestUnusable(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		w.write("kind: Nothing")
		if _, err := encryption.Load(ctx, w.network.Host("apiserver"), filepath.Join(w.dir, "encryption.yaml"), "cp-1", encryption.Lines{}, encryption.Around{}); err == nil || !strings.Contains(err.Error(), "encryption.yaml") {
			w.Error(err)
		}
	})
}
