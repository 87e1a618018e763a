package provider_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/kmsharness/kmsharness/harness/backend/kind/provider"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/matchers"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// patience bounds a cluster of one node on a machine that is busy with other things.
const patience = 8 * time.Minute

// envKind asks for tests that make clusters: each takes a minute or two and a core, too much for a unit test that nobody meant.
const envKind = "KMSHARNESS_KIND"

func needKind(t *testing.T) {
	t.Helper()
	if os.Getenv(envKind) == "" {
		t.Skipf("makes a kind cluster, which takes minutes: set %s=1", envKind)
	}
	if out, err := exec.CommandContext(t.Context(), "docker", "version").CombinedOutput(); err != nil {
		t.Skipf("no container engine answers (%v: %.200s): make engine node-image", err, out)
	}
}

// create lets the framework's own environment make a cluster, as another project's TestMain would.
func create(t *testing.T, steps ...env.Func) (context.Context, *envconf.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	config := envconf.New()
	for _, step := range steps {
		var err error
		if ctx, err = step(ctx, config); err != nil {
			t.Fatal(err)
		}
	}
	return ctx, config
}

func TestHealth(t *testing.T) {
	needKind(t)
	ran := provider.NewProvider().(*provider.Provider)
	t.Cleanup(func() {
		if err := ran.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ctx, config := create(t, envfuncs.CreateClusterWithOpts(ran, "one", provider.Health("2", "1"), provider.Progress(func(l string) { t.Log(l) })),
		envfuncs.CreateNamespace("mine"))
	test := features.New("health").
		Assess("secrets are encrypted", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "mine"}, StringData: map[string]string{"a": "in clear text"}}
			if err := c.Client().Resources().Create(ctx, secret); err != nil {
				t.Fatal(err)
			}
			text, err := cluster.ReadEtcd(ctx, ran.Environment().ControlPlane().Storage, "/registry/secrets/mine/mine")
			if err != nil || !bytes.HasPrefix(text, []byte("k8s:enc:kms:v2:kms-2:")) {
				t.Errorf("in etcd: %.40q, %v", text, err)
			}
			return ctx
		}).
		Assess("a fault shows", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			awaitDegraded(t, ctx, c, "False")
			plugin := scenario.Selector{Node: "cp-1", KeyID: "1"}
			if err := ran.Environment().Do(ctx, &scenario.Inject{Plugin: plugin, Method: "Status", Fault: "hang"}); err != nil {
				t.Fatal(err)
			}
			awaitDegraded(t, ctx, c, "True")
			return ctx
		}).Feature()
	environment, err := env.NewWithContext(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	environment.Test(t, test)
	t.Run("images", func(t *testing.T) {
		if err := ran.LoadImageArchive(ctx, archive(t)); err != nil {
			t.Error(err)
		}
		if err := ran.LoadImageArchive(ctx, ran.GetKubeconfig()); err == nil {
			t.Error("a file that is no archive was loaded")
		}
		if err := ran.LoadImage(ctx, "kmsharness-test/nobody-has-it:1"); err == nil {
			t.Error("an image that the engine does not have was loaded")
		}
	})
	t.Run("logs", func(t *testing.T) {
		exported(t, ran, "at-end/kubeapiservers.operator.openshift.io.yaml", "nodes/cp-1/manifests/kube-apiserver.yaml", "nodes/cp-1/kubeadm.yaml", "kind/kind-version.txt")
	})
	destroyed(t, ctx, ran)
}

func awaitDegraded(t *testing.T, ctx context.Context, c *envconf.Config, status string) {
	t.Helper()
	operator := &unstructured.Unstructured{}
	operator.SetAPIVersion("operator.openshift.io/v1")
	operator.SetKind("KubeAPIServer")
	get := func(ctx context.Context) (*unstructured.Unstructured, error) {
		return operator, c.Client().Resources().Get(ctx, "cluster", "", operator)
	}
	gomega.NewWithT(t).Eventually(get).WithContext(ctx).WithTimeout(30 * time.Second).WithPolling(200 * time.Millisecond).Should(matchers.HaveRollup(status, ""))
}

// archive is one of an image for this platform: containerd takes no other.
func archive(t *testing.T) string {
	t.Helper()
	image, err := random.Image(1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(file, name.MustParseReference("kmsharness-test/random:1"), image); err != nil {
		t.Fatal(err)
	}
	return file
}

func exported(t *testing.T, ran *provider.Provider, files ...string) {
	t.Helper()
	dir := t.TempDir()
	if err := ran.ExportLogs(t.Context(), dir); err != nil {
		t.Error(err)
	}
	for _, file := range files {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// destroyed ends a cluster twice, and looks for what is left.
func destroyed(t *testing.T, ctx context.Context, ran *provider.Provider) {
	t.Helper()
	dir := filepath.Dir(ran.GetKubeconfig())
	for range 2 {
		if err := ran.Destroy(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
	out, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--format", "{{.Names}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, container := range strings.Fields(string(out)) {
		if strings.HasPrefix(container, "kmsharness-"+pid()+"-") {
			t.Errorf("container %s is left", container)
		}
	}
}

func pid() string { return strconv.Itoa(os.Getpid()) }
