package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// failedPlane is one of which a node and the load balancer were made.
func failedPlane(t *testing.T) *controlPlane {
	t.Helper()
	b := bootSpec{name: "k", dir: t.TempDir(), runDir: t.TempDir(), shape: pool.Shape{Nodes: 1}, programs: cluster.NewPrograms(t.TempDir(), func(string) {}), progress: func(string) {}}
	p := newControlPlane(b)
	t.Cleanup(func() {
		if err := p.Supervisor.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := (&booting{bootSpec: b, p: p, names: []string{"cp-1"}}).prepareFolders(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.layout.node("cp-1").file(logFile(unitAPIServer)), []byte("etcd is away\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// A boot that failed leaves what tells why, and what one part lacks does not keep the others.
func TestExplain(t *testing.T) {
	fakeDocker(t, `case "$*" in
*"ps -a"*) echo k-control-plane;;
*kind.role*) echo control-plane;;
cp*) mkdir -p "$3"; echo apiserver >"$3/kube-apiserver.yaml";;
*) echo "$1";;
esac
`)
	dir := filepath.Join(t.TempDir(), "boot-1")
	cause := explain(t.Context(), failedPlane(t), errors.New("it did not come up\nbecause of much"), dir)
	if cause != "it did not come up" {
		t.Errorf("cause %q", cause)
	}
	for file, want := range map[string]string{
		"error": "it did not come up", "kind/k-control-plane/kubelet.log": "exec", "kind/docker-info.txt": "info",
		"kind/k-control-plane/manifests/kube-apiserver.yaml": "apiserver", "cp-1-apiserver.log": "etcd is away",
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v; want %q", file, text, err, want)
		}
	}
}

// What an engine that does not answer says is kept beside the error.
func TestExplainWithoutAnEngine(t *testing.T) {
	fakeDocker(t, "echo 'no such engine' >&2; exit 1\n")
	dir := filepath.Join(t.TempDir(), "boot-1")
	if cause := explain(t.Context(), failedPlane(t), errors.New("it did not come up"), dir); cause != "it did not come up" {
		t.Errorf("cause %q", cause)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "error")); err != nil || !strings.Contains(string(text), "no such engine") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestAClusterIsBootedOnceMore boots a cluster whose nodes lack an image, and then one that has it. It takes five minutes.
func TestAClusterIsBootedOnceMore(t *testing.T) {
	if os.Getenv("KMSHARNESS_KIND") == "" {
		t.Skip("KMSHARNESS_KIND=1 makes clusters, on a machine with an engine and a node image")
	}
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	boots := 0
	b.tamper = func(s *bootSpec) {
		if boots++; boots == 1 {
			s.archives.images.reporter = "localhost/no-such-reporter:1"
		}
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	out := t.TempDir()
	if kept := os.Getenv("KMSHARNESS_OUT"); kept != "" {
		out = kept
	}
	var causes []string
	s := scenario.Scenario{Name: "booted-once-more", Topology: scenario.Topology{ControlPlanes: 1}}.WithDefaults()
	began := time.Now()
	e, err := b.Prepare(t.Context(), backend.Spec{Scenario: s, Log: history.NewLog(nil), OutDir: out,
		Progress:   func(line string) { t.Logf("%4.0fs %s", time.Since(began).Seconds(), line) },
		FailedBoot: func(cause string) { causes = append(causes, cause) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Release(context.Background(), false) }()
	if boots != 2 || len(causes) != 1 || causes[0] == "" {
		t.Errorf("%d boots, causes %q", boots, causes)
	}
	for _, pattern := range []string{"error", "kind/*/kubelet.log", "kind/*/containers/*.log", "kind/*/manifests/kube-apiserver.yaml", "cp-1-*.log"} {
		if found, err := filepath.Glob(filepath.Join(out, "boot-1", pattern)); err != nil || len(found) == 0 {
			t.Errorf("boot-1 has no %s (%v)", pattern, err)
		}
	}
}
