package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/backend/kind/provider"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func TestBeforeCreate(t *testing.T) {
	c, ok := provider.NewProvider().(support.E2EClusterProviderWithImageLoader)
	if !ok {
		t.Fatal("the provider loads no images")
	}
	ctx := t.Context()
	_, generated := c.GenerateKubeconfig()
	for verb, err := range map[string]error{
		"generate": generated, "logs": c.ExportLogs(ctx, t.TempDir()), "wait": c.WaitForControlPlane(ctx, nil),
		"load": c.LoadImage(ctx, "i"), "load archive": c.LoadImageArchive(ctx, "a.tar"),
	} {
		if err == nil || !strings.Contains(err.Error(), "has not been created") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if c.KubernetesRestConfig() != nil || c.GetKubeconfig() != "" || c.(*provider.Provider).Environment() != nil {
		t.Error("a configuration before there is a cluster")
	}
	if err := c.Destroy(ctx); err != nil {
		t.Error("destroyed before it was created:", err)
	}
}

// Mistakes are one line, found before anything is started, and leave nothing behind.
func TestCreateErrors(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
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
	with := func(opts ...support.ClusterOpts) error { return create(provider.NewProvider().WithOpts(opts...)) }
	noEngine := func() error {
		t.Setenv("PATH", "")
		return with(provider.NodeImage("i"))
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"arguments":        {create(provider.NewProvider(), "x"), "unexpected arguments"},
		"a path":           {create(provider.NewProvider().WithPath("/usr/bin/kind")), "kind is built in, expected no path"},
		"too many":         {with(provider.ControlPlanes(100)), "controlPlanes is 100, expected 1 to 5"},
		"negative":         {with(provider.ControlPlanes(-1)), "controlPlanes is -1"},
		"too many keyIDs":  {with(provider.Health("1", "2", "3", "4")), "4 plugins on a node: the API servers' pods have 3 containers"},
		"no keyID":         {with(provider.Health()), "keyIDs is empty"},
		"only its args":    {with(provider.Health("1"), provider.Reporter("", "--x")), "reporter.args: expected with reporter.image only"},
		"an open template": {with(provider.Health("1"), provider.Reporter("i", "--x {y}")), "{y} is unknown"},
		"no file":          {withConfig("/nonexistent"), "read the configuration"},
		"empty keyIDs":     {withConfig(write("keyIDs: []")), "keyIDs is empty"},
		"unknown field":    {withConfig(write("controlPlane: 3")), "unknown field"},
		"zero":             {withConfig(write("controlPlanes: 0")), "controlPlanes is 0"},
		"not a document":   {withConfig(write("a: [")), "configuration"},
		"no engine":        {noEngine(), "no container engine answers"},
	} {
		if c.err == nil || strings.Contains(c.err.Error(), "\n") || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: expected one line with %q, got %v", name, c.want, c.err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "kmsharness-provider-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Options of this provider are for no other.
func TestOptionsOfAnotherProvider(t *testing.T) {
	var other support.E2EClusterProvider = struct{ support.E2EClusterProvider }{}
	for _, o := range []support.ClusterOpts{provider.ControlPlanes(3), provider.Health("1"), provider.Progress(nil)} {
		o(other)
	}
	if err := provider.NewProvider().Destroy(context.Background()); err != nil {
		t.Error(err)
	}
}
