package assets

import (
	"embed"
	"fmt"
	"io/fs"
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

var (
	kubernetesVersion = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$`)
	sampleVersion     = regexp.MustCompile(`(?m)^\tk8s\.io/sample-apiserver (v\d+\.\d+\.\d+)$`)
	coreDNSVersion    = regexp.MustCompile(`(?m)^require github\.com/coredns/coredns (v\d+\.\d+\.\d+)$`)
)

// loadRecipe is the one for the control plane of the local backend.
func loadRecipe() (recipe, error) {
	r, err := kubernetesRecipe()
	r.name, r.what, r.takes = "controlplane", "etcd and kube-apiserver", "about 5 minutes on 2 cores, 3 GB of memory"
	r.packages = []string{"./etcd", "./kube-apiserver"}
	return r, err
}

// nodeRecipe is the one for a Kubernetes node; it has what loadRecipe has, so that one go command compiles what they share.
func nodeRecipe() (recipe, error) {
	r, err := kubernetesRecipe()
	r.name, r.what, r.takes = "node", "the programs of a node", "about 9 minutes on 2 cores, 3 GB of memory"
	r.packages = []string{"./etcd", "./kube-apiserver", "go.etcd.io/etcd/etcdctl/v3"}
	for _, command := range []string{"kubelet", "kubeadm", "kubectl", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		r.packages = append(r.packages, "k8s.io/kubernetes/cmd/"+command)
	}
	return r, err
}

func kubernetesRecipe() (recipe, error) {
	r, err := readModule("recipe/kubernetes")
	if err != nil {
		return recipe{}, err
	}
	m := kubernetesVersion.FindSubmatch(r.files["go.mod"])
	if m == nil {
		return recipe{}, fmt.Errorf("the recipe's go.mod does not require k8s.io/kubernetes")
	}
	r.version, r.major, r.minor = string(m[1])+versionSuffix, string(m[2]), string(m[3])
	const pkg = "k8s.io/component-base/version."
	for _, value := range []string{"gitVersion=" + r.version, "gitMajor=" + r.major, "gitMinor=" + r.minor, "gitTreeState=clean"} {
		r.stamp = append(r.stamp, pkg+value)
	}
	return r, nil
}

// sampleRecipe is the one for Kubernetes' sample of an aggregated API server, of the release of the control plane's
// kube-apiserver: it shares nearly all packages with that, in the same versions, so that the go command's cache has them.
func sampleRecipe() (recipe, error) {
	r, err := readModule("recipe/sampleapiserver")
	if err != nil {
		return recipe{}, err
	}
	m := sampleVersion.FindSubmatch(r.files["go.mod"])
	if m == nil {
		return recipe{}, fmt.Errorf("the recipe's go.mod does not require k8s.io/sample-apiserver")
	}
	r.name, r.what, r.takes = "sample-apiserver", "sample-apiserver", "about 1 minute on 2 cores after kube-apiserver, 3 without"
	r.packages, r.version = []string{"./sample-apiserver"}, string(m[1])+versionSuffix
	return r, nil
}

func coreDNSRecipe() (recipe, error) {
	r, err := readModule("recipe/coredns")
	if err != nil {
		return recipe{}, err
	}
	m := coreDNSVersion.FindSubmatch(r.files["go.mod"])
	if m == nil {
		return recipe{}, fmt.Errorf("the recipe's go.mod does not require github.com/coredns/coredns")
	}
	r.name, r.what, r.takes = "coredns", "CoreDNS", "about 2 minutes on 2 cores"
	r.packages, r.version = []string{"./coredns"}, string(m[1])
	return r, nil
}

func readModule(dir string) (recipe, error) {
	r := recipe{files: map[string][]byte{}}
	err := fs.WalkDir(recipeFiles, dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := recipeFiles.ReadFile(path)
		r.files[strings.TrimSuffix(strings.TrimPrefix(path, dir+"/"), ".txt")] = content
		return err
	})
	return r, err
}
