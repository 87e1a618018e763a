package assets

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// recipeFiles are a Go module with a main package for each program. Its go.mod repeats the replacements of Kubernetes'
// own with released modules; with go.sum every source file is pinned by checksum. The suffix .txt hides it from the Go tool.
//
//go:embed recipe
var recipeFiles embed.FS

// versionSuffix tells a kube-apiserver built here from others.
const versionSuffix = "+kmsharness"

var kubernetesVersion = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$`)

// recipe is what is built, and how.
type recipe struct {
	version      string // "v1.37.1+kmsharness"
	major, minor string
	files        map[string][]byte // path in the module → content
}

func loadRecipe() (recipe, error) {
	r := recipe{files: map[string][]byte{}}
	err := fs.WalkDir(recipeFiles, "recipe", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := recipeFiles.ReadFile(path)
		r.files[strings.TrimSuffix(strings.TrimPrefix(path, "recipe/"), ".txt")] = content
		return err
	})
	if err != nil {
		return recipe{}, err
	}
	m := kubernetesVersion.FindSubmatch(r.files["go.mod"])
	if m == nil {
		return recipe{}, fmt.Errorf("the recipe's go.mod does not require k8s.io/kubernetes")
	}
	r.version, r.major, r.minor = string(m[1])+versionSuffix, string(m[2]), string(m[3])
	return r, nil
}

// args of the go command. Flags beat a GOFLAGS of the user.
func (r recipe) args(out string) []string {
	const pkg = "k8s.io/component-base/version."
	ld := []string{"-s -w", "gitVersion=" + r.version, "gitMajor=" + r.major, "gitMinor=" + r.minor, "gitTreeState=clean"}
	return []string{"build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.Join(ld, " -X "+pkg), "-o", out + string(filepath.Separator), "./etcd", "./kube-apiserver"}
}

// env is added to the user's own, so that a proxy, a mirror or a private module cache keep working.
func (r recipe) env() []string {
	return []string{"CGO_ENABLED=0", "GOWORK=off", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
}

// key names the result in the cache: another recipe or platform is another result.
func (r recipe) key() string {
	h := sha256.New()
	fmt.Fprintln(h, r.args("out"), r.env())
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(r.files[name]), r.files[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// write puts the module below dir.
func (r recipe) write(dir string) error {
	for name, content := range r.files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
