package assets

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// fakeBuildAll makes what the go command is asked for, by the last element of each package that is no version.
const fakeBuildAll = `mkdir -p $out; shift 2
	for p; do n=$(basename ${p%/v3}); echo '#!/bin/sh' > $out/$n; chmod +x $out/$n; done
	echo x >> ../count`

func TestObtain(t *testing.T) {
	cacheDir, _ := emptyMachine(t)
	fakeGo(t, fakeBuildAll)
	for set, program := range map[Set]string{Node: "kubelet", CoreDNS: "coredns", SampleAPIServer: SampleAPIServerProgram} {
		for range 2 { // the second time from the cache
			p, err := Obtain(t.Context(), set, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(p.Path(program)); err != nil {
				t.Error(err)
			}
			if described, err := Describe(set); err != nil || described != p {
				t.Errorf("%+v, %v; expected %+v", described, err, p)
			}
			if !strings.HasPrefix(p.Version, "v") || strings.Contains(p.Version, "+") {
				t.Errorf("version %q", p.Version)
			}
		}
	}
	if count, _ := os.ReadFile(filepath.Join(cacheDir, "count")); string(count) != "x\nx\nx\n" {
		t.Errorf("built %q times", count)
	}
}

// A node has the control plane's programs, so nobody builds those again.
func TestControlPlaneOfANode(t *testing.T) {
	emptyMachine(t)
	fakeGo(t, fakeBuildAll)
	node, err := Obtain(t.Context(), Node, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Ensure(t.Context(), Options{LocalOnly: true})
	if err != nil || filepath.Dir(b.Etcd) != node.Dir || !b.EncryptionPoll || !strings.HasSuffix(b.Version, versionSuffix) {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestIncompleteIsBuiltAgain(t *testing.T) {
	emptyMachine(t)
	fakeGo(t, fakeBuildAll)
	p, err := Obtain(t.Context(), Node, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.Path("etcdctl")); err != nil {
		t.Fatal(err)
	}
	if _, err := Obtain(t.Context(), Node, func(string) {}); err != nil {
		t.Error(err)
	}
	fakeGo(t, `mkdir -p $out`)
	if err := os.Remove(p.Path("kubelet")); err != nil {
		t.Fatal(err)
	}
	if _, err := Obtain(t.Context(), Node, func(string) {}); err == nil || !strings.Contains(err.Error(), "the programs of a node") {
		t.Errorf("a build without programs: %v", err)
	}
}

func TestRecipes(t *testing.T) {
	keys := map[string]bool{}
	for _, load := range []func() (recipe, error){loadRecipe, nodeRecipe, coreDNSRecipe, sampleRecipe} {
		r, err := load()
		if err != nil {
			t.Fatal(err)
		}
		if len(r.files["go.mod"]) == 0 || len(r.files["go.sum"]) == 0 || r.version == "" || keys[r.key()] {
			t.Errorf("%s: %q, files %d, key %s", r.name, r.version, len(r.files), r.key())
		}
		keys[r.key()] = true
	}
	node, _ := nodeRecipe()
	plane, _ := loadRecipe()
	for _, program := range append(plane.programs(), "etcdctl", "kubelet", "kubeadm", "kubectl", "kube-proxy") {
		if !slices.Contains(node.programs(), program) {
			t.Errorf("a node has no %s among %q", program, node.programs())
		}
	}
}

// The aggregated API server is of the same release as kube-apiserver, and looks for a changed encryption configuration as often.
func TestSampleFitsKubernetes(t *testing.T) {
	plane, err := loadRecipe()
	if err != nil {
		t.Fatal(err)
	}
	sample, err := sampleRecipe()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(plane.version, "v1.", "v0.", 1); sample.version != want {
		t.Errorf("sample-apiserver %s beside kube-apiserver %s, expected %s", sample.version, plane.version, want)
	}
	if !strings.Contains(string(sample.files["sample-apiserver/main.go"]), `"`+EnvEncryptionPoll+`"`) {
		t.Errorf("sample-apiserver's main does not read %s", EnvEncryptionPoll)
	}
}

// TestKubeAPIServers: a kube-apiserver of each release that a scenario can name is found or built, and says that it is of that release.
func TestKubeAPIServers(t *testing.T) {
	emptyMachine(t)
	fakeGo(t, `mkdir -p $out; v=$(sed -n 's/.*k8s.io.kubernetes //p' go.mod); test ! -e go.sum -a $(grep -c "v0.${v#v1.}" go.mod) -gt 30 || exit 9
	printf "#!/bin/sh\necho Kubernetes $v+kmsharness\n" > $out/kube-apiserver; chmod +x $out/kube-apiserver; echo x >> ../count`)
	r, err := loadRecipe()
	if err != nil {
		t.Fatal(err)
	}
	own := Binaries{KubeAPIServer: "own", Version: r.version}
	field, _ := reflect.TypeFor[scenario.Topology]().FieldByName("Kubernetes")
	releases := strings.Split(field.Tag.Get("enum"), ",")
	for range 2 { // the second time from the cache
		paths, err := KubeAPIServers(t.Context(), own, releases, func(string) {})
		if err != nil || len(paths) != len(older())+1 || paths[releases[len(older())]] != "own" {
			t.Errorf("%v, %v", paths, err)
		}
	}
	cacheDir, _ := CacheDir()
	if count, _ := os.ReadFile(filepath.Join(cacheDir, "count")); string(count) != "x\nx\nx\n" {
		t.Errorf("built %q times", count)
	}
	if _, err := KubeAPIServers(t.Context(), own, []string{"1.9"}, func(string) {}); err == nil || !strings.Contains(err.Error(), "1.9") {
		t.Errorf("1.9: %v", err)
	}
}

// TestPrevious: the previous release is built from its commit, and found again.
func TestPrevious(t *testing.T) {
	if exec.Command("git", "-C", "../..", "cat-file", "-e", previousCommit).Run() != nil {
		t.Skip("this clone has no history")
	}
	emptyMachine(t)
	fakeGo(t, `test -f cmd/kms-health-reporter/main.go -a ! -e scenarios/catalogue/reports-change-form.yaml || exit 9; `+fakeBuildAll)
	p, err := Previous(t.Context(), "../..", func(string) {})
	if err != nil || p.Version != previousCommit[:8] {
		t.Fatalf("%+v, %v", p, err)
	}
	fakeGo(t, "exit 1")
	if again, err := Previous(t.Context(), "../..", func(string) {}); err != nil || again != p {
		t.Errorf("%+v, %v; expected %+v", again, err, p)
	}
	if _, err := Previous(t.Context(), t.TempDir(), func(string) {}); err == nil || !strings.Contains(err.Error(), "history") {
		t.Errorf("without a repository: %v", err)
	}
}
