package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/kmsharness/kmsharness/harness/assets"
)

// recipeFiles are the scripts, the list of packages, the files for the node, and the source of pause.
//
//go:embed recipe pause/main.go
var recipeFiles embed.FS

// format changes when this program makes another image of the same inputs.
const format = 1

// label is where an image says what it was made of.
const label = "org.kmsharness.inputs"

// hash is over all that goes into the image except the versions of Debian's packages, which are those of the day.
func hash(files fs.FS, kind kindModule, programs ...assets.Programs) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, format, runtime.GOARCH, kind.Version, kind.Sum)
	for _, p := range programs {
		fmt.Fprintln(h, p.Version, p.Key)
	}
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// packages reads the list of Debian packages.
func packages(list string) []string {
	var out []string
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(line, "#")
		out = append(out, strings.Fields(line)...)
	}
	return out
}

// writeRecipe puts the files where the scripts can be run from.
func writeRecipe(dir string) error {
	return fs.WalkDir(recipeFiles, "recipe", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := recipeFiles.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, "recipe/"))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o755)
	})
}

// kindModule is the version of kind that go.mod names, on this machine.
type kindModule struct{ Version, Sum, Dir string }

func downloadKind(ctx context.Context) (kindModule, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/kind").Output()
	if err != nil {
		return kindModule{}, fmt.Errorf("download kind's Go module: %w; is GOPROXY reachable?", err)
	}
	var m kindModule
	if err := json.Unmarshal(out, &m); err != nil || m.Dir == "" {
		return kindModule{}, fmt.Errorf("download kind's Go module: unexpected answer %.200q (%w)", out, err)
	}
	return m, nil
}

// balancerImage is the name under which kind looks for its load balancer. kind keeps it in an internal package, so it is read
// from the source.
func (m kindModule) balancerImage() (string, error) {
	path := filepath.Join(m.Dir, "pkg", "cluster", "internal", "loadbalancer", "const.go")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the name of kind's load balancer image: %w", err)
	}
	name := regexp.MustCompile(`(?m)^const Image = "(.+)"$`).FindSubmatch(text)
	if name == nil {
		return "", fmt.Errorf("read the name of kind's load balancer image: no constant Image in %s of kind %s", path, m.Version)
	}
	return string(name[1]), nil
}
