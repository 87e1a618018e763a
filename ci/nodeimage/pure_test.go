package main

import (
	"io/fs"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kmsharness/kmsharness/harness/assets"
)

func TestPackages(t *testing.T) {
	got := packages("# a comment\n\nsystemd  bash # why\ncurl\n")
	if want := []string{"systemd", "bash", "curl"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	list, err := recipeFiles.ReadFile("recipe/packages.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, needed := range []string{"systemd", "containerd", "iptables", "iproute2", "procps", "haproxy"} {
		if !strings.Contains(" "+strings.Join(packages(string(list)), " ")+" ", " "+needed+" ") {
			t.Errorf("%s is not among the packages", needed)
		}
	}
}

// Every input changes the hash, and nothing else does.
func TestHash(t *testing.T) {
	files := func(content string) fs.FS { return fstest.MapFS{"recipe/x.sh": {Data: []byte(content)}} }
	kind := kindModule{Version: "v1", Sum: "h1:a", Dir: "/a"}
	programs := assets.Programs{Dir: "/p", Version: "v1.2.3", Key: "k"}
	sum := func(files fs.FS, kind kindModule, p ...assets.Programs) string {
		h, err := hash(files, kind, p...)
		if err != nil || len(h) != 16 {
			t.Fatalf("%q, %v", h, err)
		}
		return h
	}
	base := sum(files("a"), kind, programs)
	elsewhere, moved := kind, programs
	elsewhere.Dir, moved.Dir = "/b", "/q"
	if sum(files("a"), elsewhere, moved) != base {
		t.Error("the hash depends on where things are")
	}
	newer, rebuilt := kind, programs
	newer.Sum, rebuilt.Key = "h1:b", "l"
	for what, other := range map[string]string{
		"script": sum(files("b"), kind, programs), "kind": sum(files("a"), newer, programs), "programs": sum(files("a"), kind, rebuilt),
	} {
		if other == base {
			t.Errorf("the hash does not depend on: %s", what)
		}
	}
}

func TestComponents(t *testing.T) {
	images := []string{"r/kube-apiserver:v1", "r/kube-proxy:v1", "r/coredns/coredns:v2", "r/pause:3", "r/etcd:4-0"}
	list, err := components(images, func(name string) string { return "/bin/" + name })
	if err != nil {
		t.Fatal(err)
	}
	want := []component{
		{image: images[0], entrypoint: "/usr/local/bin/kube-apiserver", programs: []string{"/bin/kube-apiserver"}},
		{image: images[1], entrypoint: "/usr/local/bin/kube-proxy", programs: []string{"/bin/kube-proxy"}, tables: true},
		{image: images[2], entrypoint: "/coredns", programs: []string{"/bin/coredns"}},
		{image: images[3], entrypoint: "/pause", programs: []string{"/bin/pause"}},
		{image: images[4], entrypoint: "/usr/local/bin/etcd", programs: []string{"/bin/etcd", "/bin/etcdctl"}},
	}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, expected\n%+v", list, want)
	}
	if _, err := components([]string{"r/new-thing:v1"}, nil); err == nil || !strings.Contains(err.Error(), "new-thing") {
		t.Errorf("an image that nothing is built for: %v", err)
	}
	if image, err := imageNamed(images, "coredns"); err != nil || !strings.HasSuffix(image, ":v2") {
		t.Errorf("%q, %v", image, err)
	}
	if _, err := imageNamed(images, "dns"); err == nil {
		t.Error("found an image that is not there")
	}
	if err := sameCoreDNS(images, "v2"); err != nil {
		t.Error(err)
	}
	for name, images := range map[string][]string{"another version": {"r/coredns/coredns:v3"}, "none": images[:2]} {
		if err := sameCoreDNS(images, "v2"); err == nil {
			t.Errorf("CoreDNS, %s: no error", name)
		}
	}
}

// kind's source is read as go.mod has it, so that an upgrade that moves the constant is noticed here.
func TestBalancerImage(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command to locate kind's module")
	}
	kind, err := downloadKind(t.Context())
	if err != nil {
		t.Skipf("kind's module is not on this machine: %v", err)
	}
	image, err := kind.balancerImage()
	if err != nil || !strings.Contains(image, "/") || !strings.Contains(image, ":") {
		t.Errorf("%q, %v", image, err)
	}
	if _, err := (kindModule{Dir: t.TempDir()}).balancerImage(); err == nil {
		t.Error("an empty module has a load balancer")
	}
}

func TestInShort(t *testing.T) {
	if got := inShort(os.ErrNotExist); got != "file does not exist" {
		t.Errorf("%q", got)
	}
	if got := inShort(&os.PathError{Op: "open", Path: "x", Err: os.ErrPermission}); got != "permission denied" {
		t.Errorf("%q", got)
	}
}
