package assets

import (
	"archive/tar"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
)

// recipeFiles are Go modules: one for all that is Kubernetes' and etcd's, one for sample-apiserver, which is built only if a
// scenario needs it and leaves the key of the first as it is, and one for CoreDNS, which wants other versions of the same
// libraries. They have main packages of their own and take others from the modules that they require. The go.mod of the
// first repeats the replacements of Kubernetes' own with released modules; with go.sum every source file is pinned by
// checksum. The suffix .txt hides them from the Go tool.
//
//go:embed recipe
var recipeFiles embed.FS

// versionSuffix tells a kube-apiserver built here from others.
const versionSuffix = "+kmsharness"

// loadRecipe is the one for the control plane of the local backend.
func loadRecipe() (recipe, error) {
	return kubernetesRecipe(recipe{name: "controlplane", what: "etcd and kube-apiserver", takes: "about 5 minutes on 2 cores, 3 GB of memory",
		packages: []string{"./etcd", "./kube-apiserver"}})
}

// nodeRecipe is the one for a Kubernetes node; it has what loadRecipe has, so that one go command compiles what they share.
func nodeRecipe() (recipe, error) {
	r := recipe{name: "node", what: "the programs of a node", takes: "about 9 minutes on 2 cores, 3 GB of memory",
		packages: []string{"./etcd", "./kube-apiserver", "go.etcd.io/etcd/etcdctl/v3"}}
	for _, command := range []string{"kubelet", "kubeadm", "kubectl", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		r.packages = append(r.packages, "k8s.io/kubernetes/cmd/"+command)
	}
	return kubernetesRecipe(r)
}

func kubernetesRecipe(r recipe) (recipe, error) {
	r, err := r.read("recipe/kubernetes", "k8s.io/kubernetes")
	return r.stamped(), err
}

// olderRelease is a kube-apiserver that can be built beside that of the recipe. godebug is what its go.mod says: by which release of Go it behaves.
type olderRelease struct{ name, version, godebug string }

// older are the newest patch releases that the Go module proxy serves.
func older() []olderRelease {
	return []olderRelease{{"1.34", "v1.34.4", "go1.24"}, {"1.35", "v1.35.4", "go1.25"}, {"1.36", "v1.36.3", "go1.26"}}
}

// olderRecipe is the one for the kube-apiserver of an older release: that of the control plane with other versions of Kubernetes' own modules. What
// else these require is in their go.mod.
func olderRecipe(is olderRelease) (recipe, error) {
	newest, err := loadRecipe()
	modules := strings.Replace(is.version, "v1.", "v0.", 1)
	replaced := regexp.MustCompile(`(?ms)^replace \(.*?^\)\n`).Find(newest.files["go.mod"])
	mod := fmt.Sprintf("module kmsharness.invalid/apiserver\n\ngo 1.26.0\n\ngodebug default=%s\n\nrequire (\n\tk8s.io/apiserver %s\n\tk8s.io/component-base %[2]s\n\tk8s.io/kubernetes %s\n)\n\n%s",
		is.godebug, modules, is.version, regexp.MustCompile(`v0\.\S+`).ReplaceAll(replaced, []byte(modules)))
	r := recipe{name: "kube-apiserver-" + is.name, what: "kube-apiserver", takes: newest.takes, packages: newest.packages[1:], unpinned: true, version: is.version + versionSuffix,
		files: map[string][]byte{"go.mod": []byte(mod), "kube-apiserver/main.go": newest.files["kube-apiserver/main.go"]}}
	r.major, r.minor, _ = strings.Cut(is.name, ".")
	return r.stamped(), err
}

// previousCommit is what counts as the previous release of this project, which has none yet: the last commit before --alternatives.
const previousCommit = "ef443881c01f0a9ccd2bb5291189fc5c342f217f"

// previousRecipe is the one for reporter, aggregator and operator of the previous release, from the repository at root.
func previousRecipe(ctx context.Context, root string) (recipe, error) {
	r := recipe{name: "previous", what: "reporter, aggregator and operator", takes: "about 2 minutes on 2 cores", version: previousCommit[:8], files: map[string][]byte{},
		packages: []string{"./cmd/kms-health-reporter", "./cmd/kms-health-aggregator", "./cmd/encryption-operator"}}
	text, err := exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", previousCommit).Output()
	if err != nil {
		return r, fmt.Errorf("git archive %s in %s, which needs the history of this project: %w", r.version, root, err)
	}
	for archive := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err == nil && h.Typeflag == tar.TypeReg {
			r.files[h.Name], err = io.ReadAll(archive)
		}
		if err != nil {
			return r, err
		}
	}
}

// stamped sets what the programs of Kubernetes say of their version.
func (r recipe) stamped() recipe {
	const pkg = "k8s.io/component-base/version."
	for _, value := range []string{"gitVersion=" + r.version, "gitMajor=" + r.major, "gitMinor=" + r.minor, "gitTreeState=clean"} {
		r.stamp = append(r.stamp, pkg+value)
	}
	return r
}

// sampleRecipe is the one for Kubernetes' sample of an aggregated API server, of the release of the control plane's
// kube-apiserver: it shares nearly all packages with that, in the same versions, so that the go command's cache has them.
func sampleRecipe() (recipe, error) {
	return recipe{name: "sample-apiserver", what: "sample-apiserver", takes: "about 1 minute on 2 cores after kube-apiserver, 3 without",
		packages: []string{"./sample-apiserver"}}.read("recipe/sampleapiserver", "k8s.io/sample-apiserver")
}

func coreDNSRecipe() (recipe, error) {
	r, err := recipe{name: "coredns", what: "CoreDNS", takes: "about 2 minutes on 2 cores", packages: []string{"./coredns"}}.read("recipe/coredns", "github.com/coredns/coredns")
	r.version = strings.TrimSuffix(r.version, versionSuffix)
	return r, err
}

// read adds the files of the recipe's module, and the version in which it requires another.
func (r recipe) read(dir, requires string) (recipe, error) {
	r.files = map[string][]byte{}
	err := fs.WalkDir(recipeFiles, dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := recipeFiles.ReadFile(path)
		r.files[strings.TrimSuffix(strings.TrimPrefix(path, dir+"/"), ".txt")] = content
		return err
	})
	if err != nil {
		return r, err
	}
	m := regexp.MustCompile(`(?m)^(?:\t|require )` + regexp.QuoteMeta(requires) + ` (v(\d+)\.(\d+)\.\d+)$`).FindStringSubmatch(string(r.files["go.mod"]))
	if m == nil {
		return r, fmt.Errorf("the recipe's go.mod does not require %s", requires)
	}
	r.version, r.major, r.minor = m[1]+versionSuffix, m[2], m[3]
	return r, nil
}
