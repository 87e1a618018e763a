package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// EnvPrograms names a directory with this project's programs.
const EnvPrograms = "KMSHARNESS_BIN"

// Programs finds executables: a path as it is; this project's programs in EnvPrograms, beside the running executable, or
// built from the module that the working directory is in; anything else on PATH.
type Programs struct {
	dir      string // receives what is built
	progress func(string)
	// PluginArgs are further arguments of every fake plugin.
	PluginArgs []string
	// Plugin takes the fake plugin's place, which then stands in front of it.
	Plugin RealPlugin

	mu    sync.Mutex
	found map[string]string
}

// NewPrograms builds what it does not find into dir.
func NewPrograms(dir string, progress func(string)) *Programs {
	return &Programs{dir: dir, progress: progress, found: map[string]string{}}
}

// ownPrograms are this project's.
var ownPrograms = []string{"kms-health-reporter", "kms-health-aggregator", "encryption-operator", "fake-kms-plugin", "kmsharness-supervisor", "kmsharness-proxy", "kmsharness-front"}

// own reports whether a name is that of one of this project's programs.
func own(name string) bool { return slices.Contains(ownPrograms, name) }

func (p *Programs) Find(ctx context.Context, name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if path := p.found[name]; path != "" {
		return path, nil
	}
	path, err := p.search(ctx, name)
	if err != nil {
		return "", fmt.Errorf("find the program %s: %w", name, err)
	}
	p.found[name] = path
	return path, nil
}

func (p *Programs) search(ctx context.Context, name string) (string, error) {
	path, err := locate(name)
	if errors.Is(err, errNotBuilt) {
		return p.build(ctx, name)
	}
	return path, err
}

func (p *Programs) build(ctx context.Context, name string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	p.progress("building " + name)
	path := filepath.Join(p.dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/"+name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // some run in images without libraries
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/%s in %s: %w\n%s", name, root, err, out)
	}
	return path, nil
}
