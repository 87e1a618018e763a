package assets

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeProgram answers --version like kube-apiserver v1.2.3.
const fakeProgram = "#!/bin/sh\necho Kubernetes v1.2.3\n"

// programs puts both into a directory.
func programs(t *testing.T, dir string) string {
	t.Helper()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		write(t, filepath.Join(dir, name), fakeProgram, 0o755)
	}
	return dir
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// emptyMachine has no binaries anywhere; it returns its cache and setup-envtest's store.
func emptyMachine(t *testing.T) (cacheDir, storeDir string) {
	t.Helper()
	cacheDir, data := t.TempDir(), t.TempDir()
	t.Setenv(EnvAssets, "")
	t.Setenv(EnvCache, cacheDir)
	t.Setenv("XDG_DATA_HOME", data)
	return cacheDir, filepath.Join(data, "kubebuilder-envtest", "k8s")
}

// lines collects progress.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func TestOrder(t *testing.T) {
	_, store := emptyMachine(t)
	c, err := cacheOf(loadRecipe())
	if err != nil {
		t.Fatal(err)
	}
	ensure := func() (Binaries, string) {
		t.Helper()
		said := &lines{}
		b, err := Ensure(t.Context(), Options{LocalOnly: true, Progress: said.add})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said.String(), "\n") || !strings.Contains(said.String(), b.Version) || !strings.Contains(said.String(), b.Origin) {
			t.Errorf("said %q, expected one line with version and origin", said)
		}
		return b, filepath.Dir(b.Etcd)
	}
	if _, err := Ensure(t.Context(), Options{LocalOnly: true}); !errors.Is(err, ErrNotFound) {
		t.Fatalf("on an empty machine: %v", err)
	}
	// From the last resort to the first.
	r := c.recipe
	programs(t, filepath.Join(store, r.major+"."+r.minor+".0-"+platform()))
	other := programs(t, filepath.Join(store, r.major+".1.0-"+platform()))
	b, dir := ensure()
	if dir == other || !strings.HasPrefix(dir, store) || b.Version != "v"+r.major+"."+r.minor+".0" || b.EncryptionPoll {
		t.Errorf("from the store: %+v", b)
	}
	programs(t, c.result())
	if b, dir = ensure(); dir != c.result() || b.Version != r.version || !b.EncryptionPoll {
		t.Errorf("from the cache: %+v", b)
	}
	own := programs(t, t.TempDir())
	t.Setenv(EnvAssets, own)
	if b, dir = ensure(); dir != own || b.Version != "v1.2.3" || b.EncryptionPoll {
		t.Errorf("from the environment: %+v", b)
	}
}

func TestEnvironmentErrors(t *testing.T) {
	emptyMachine(t)
	for name, spoil := range map[string]func(dir string){
		"no etcd":        func(dir string) { os.Remove(filepath.Join(dir, "etcd")) },
		"no apiserver":   func(dir string) { os.Remove(filepath.Join(dir, "kube-apiserver")) },
		"no program":     func(dir string) { os.Chmod(filepath.Join(dir, "etcd"), 0o644) },
		"other program":  func(dir string) { write(t, filepath.Join(dir, "kube-apiserver"), "#!/bin/sh\necho hello\n", 0o755) },
		"broken program": func(dir string) { write(t, filepath.Join(dir, "kube-apiserver"), "#!/bin/sh\nexit 1\n", 0o755) },
	} {
		dir := programs(t, t.TempDir())
		spoil(dir)
		t.Setenv(EnvAssets, dir)
		_, err := Ensure(t.Context(), Options{})
		if err == nil || !strings.Contains(err.Error(), EnvAssets) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: expected one line that names %s, got %v", name, EnvAssets, err)
		}
	}
}

// index is a server like the one that setup-envtest asks.
func index(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s.URL
}

func TestBuildNeedsGo(t *testing.T) {
	emptyMachine(t)
	t.Setenv("PATH", t.TempDir())
	said := &lines{}
	offline := index(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	_, err := Ensure(t.Context(), Options{Progress: said.add, index: offline})
	if err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Errorf("without Go: %v", err)
	}
	if !strings.Contains(said.String(), "no download") {
		t.Errorf("said %q", said)
	}
}

// fakeGo stands for the go command: it runs a script with the output directory as $out.
func fakeGo(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	find := `while [ "$1" != -o ]; do shift; done; out=$2; `
	write(t, filepath.Join(dir, "go"), "#!/bin/sh\n"+find+script+"\n", 0o755)
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

const fakeBuild = `mkdir -p $out; for p in etcd kube-apiserver; do echo '#!/bin/sh' > $out/$p; chmod +x $out/$p; done`

func TestBuild(t *testing.T) {
	cacheDir, _ := emptyMachine(t)
	fakeGo(t, `test -f go.mod -a -f go.sum -a -f etcd/main.go -a -f kube-apiserver/main.go || exit 9; echo x >> ../count; `+fakeBuild)
	write(t, filepath.Join(cacheDir, "building-of-somebody-killed", "x"), "", 0o644)
	var all sync.WaitGroup
	for range 4 { // one builds, the others wait for it
		all.Go(func() {
			b, err := Ensure(t.Context(), Options{index: "http://127.0.0.1:1"})
			if err != nil || !b.EncryptionPoll {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
	all.Wait()
	count, err := os.ReadFile(filepath.Join(cacheDir, "count"))
	if err != nil || string(count) != "x\n" {
		t.Errorf("built %q times, %v", count, err)
	}
}

func TestBuildFails(t *testing.T) {
	cacheDir, _ := emptyMachine(t)
	fakeGo(t, `echo "no such module"; exit 1`)
	_, err := Ensure(t.Context(), Options{index: "http://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "no such module") {
		t.Errorf("%v", err)
	}
	fakeGo(t, fakeBuild) // what the failure left does not disturb
	if _, err := Ensure(t.Context(), Options{index: "http://127.0.0.1:1"}); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(cacheDir, "building-*")); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestBuildCanceled(t *testing.T) {
	cacheDir, _ := emptyMachine(t)
	fakeGo(t, `touch ../begun; sleep 100`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for range ticker.C {
			if _, err := os.Stat(filepath.Join(cacheDir, "begun")); err == nil || t.Context().Err() != nil {
				return
			}
		}
	}()
	if _, err := Ensure(ctx, Options{index: "http://127.0.0.1:1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestHowFar(t *testing.T) {
	for log, want := range map[string]string{
		"":                             "0 packages compiled, now starting",
		"go: downloading a v1\n":       "0 packages compiled, now downloading a v1",
		"go: downloading a v1\nx/y\nz": "2 packages compiled, now z",
	} {
		file := filepath.Join(t.TempDir(), "log")
		write(t, file, log, 0o644)
		if got := howFar(file); got != want {
			t.Errorf("%q: %q, expected %q", log, got, want)
		}
	}
}

// The recipe is pinned: the same everywhere, other for other content.
func TestRecipe(t *testing.T) {
	r, err := loadRecipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum", "etcd/main.go", "kube-apiserver/main.go"} {
		if len(r.files[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if !strings.Contains(string(r.files["kube-apiserver/main.go"]), `"`+EnvEncryptionPoll+`"`) {
		t.Errorf("kube-apiserver's main does not read %s", EnvEncryptionPoll)
	}
	before := r.key()
	r.files["go.sum"] = append([]byte("x"), r.files["go.sum"]...)
	if r.key() == before {
		t.Error("the key does not depend on go.sum")
	}
}
