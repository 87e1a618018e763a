package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/controlplane/provider"
)

// patience bounds a boot on a machine that is busy with other things.
const patience = 3 * time.Minute

// The framework's own environment creates, uses and destroys a cluster, as another project's TestMain would.
func TestInEnvironment(t *testing.T) {
	if testing.Short() {
		t.Skip("it boots a control plane: make nightly")
	}
	assetstest.Find(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster := provider.NewProvider()
	config := envconf.New()
	for _, step := range []env.Func{envfuncs.CreateClusterWithOpts(cluster, "two", provider.ControlPlanes(2)), envfuncs.CreateNamespace("mine")} {
		var err error
		if ctx, err = step(ctx, config); err != nil {
			t.Fatal(err)
		}
	}
	feature := features.New("namespace").Assess("is there", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
		var ns corev1.Namespace
		if err := c.Client().Resources().Get(ctx, "mine", "", &ns); err != nil {
			t.Error(err)
		}
		return ctx
	}).Feature()
	environment, err := env.NewWithContext(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	environment.Test(t, feature)
	t.Run("nodes", func(t *testing.T) { testNodes(t, cluster) })
	t.Run("logs", func(t *testing.T) { testLogs(t, cluster) })
	dir := filepath.Dir(cluster.GetKubeconfig())
	if _, err := envfuncs.DestroyCluster("two")(ctx, config); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
	if err := cluster.Destroy(ctx); err != nil {
		t.Error("destroyed twice:", err)
	}
}

func states(t *testing.T, c support.E2EClusterProviderWithLifeCycle) string {
	t.Helper()
	nodes, err := c.ListNode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, n := range nodes {
		all = append(all, n.Name+" "+n.State)
	}
	return strings.Join(all, ", ")
}

func testNodes(t *testing.T, cluster support.E2EClusterProvider) {
	c, ok := cluster.(support.E2EClusterProviderWithLifeCycle)
	if !ok {
		t.Fatal("the provider has no nodes")
	}
	node := func(name string) *support.Node { return &support.Node{Name: name} }
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"stop", func() error { return c.StopNode(t.Context(), node("cp-1")) }, "cp-1 stopped, cp-2 running"},
		{"start", func() error { return c.StartNode(t.Context(), node("cp-1")) }, "cp-1 running, cp-2 running"},
		{"remove", func() error { return c.RemoveNode(t.Context(), node("cp-1")) }, "cp-2 running"},
		{"add", func() error { return c.AddNode(t.Context(), node("cp-3")) }, "cp-2 running, cp-3 running"},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := states(t, c); got != step.want {
			t.Errorf("after %s: %s, expected %s", step.name, got, step.want)
		}
	}
	if err := c.StopNode(t.Context(), node("cp-9")); err == nil {
		t.Error("stopped a node that does not exist")
	}
}

func testLogs(t *testing.T, cluster support.E2EClusterProvider) {
	dir := t.TempDir()
	if err := cluster.ExportLogs(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(files, filepath.Join(dir, "etcd.log")) {
		t.Errorf("exported %v", files)
	}
}

func TestBeforeCreate(t *testing.T) {
	c, ok := provider.NewProvider().(support.E2EClusterProviderWithLifeCycle)
	if !ok {
		t.Fatal("the provider has no nodes")
	}
	ctx, node := t.Context(), &support.Node{Name: "cp-1"}
	_, listed := c.ListNode(ctx)
	_, generated := c.GenerateKubeconfig()
	for verb, err := range map[string]error{
		"list": listed, "generate": generated, "add": c.AddNode(ctx, node), "remove": c.RemoveNode(ctx, node),
		"start": c.StartNode(ctx, node), "stop": c.StopNode(ctx, node), "logs": c.ExportLogs(ctx, t.TempDir()),
		"wait": c.WaitForControlPlane(ctx, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), "has not been created") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if c.KubernetesRestConfig() != nil || c.GetKubeconfig() != "" {
		t.Error("a configuration before there is a cluster")
	}
}

func TestCreateErrors(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	create := func(p support.E2EClusterProvider, args ...string) error {
		_, err := p.Create(t.Context(), args...)
		return err
	}
	withConfig := func(path string) error {
		_, err := provider.NewProvider().CreateWithConfig(t.Context(), path)
		return err
	}
	for name, err := range map[string]error{
		"arguments":      create(provider.NewProvider(), "x"),
		"too many":       create(provider.NewProvider().WithOpts(provider.ControlPlanes(100))),
		"negative":       create(provider.NewProvider().WithOpts(provider.ControlPlanes(-1))),
		"no binaries":    create(provider.NewProvider().WithPath(t.TempDir())),
		"no file":        withConfig("/nonexistent"),
		"unknown field":  withConfig(write("controlPlane: 3")),
		"zero":           withConfig(write("controlPlanes: 0")),
		"not a document": withConfig(write("a: [")),
	} {
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: expected one line, got %v", name, err)
		}
	}
}
