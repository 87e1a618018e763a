package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// EnvPrograms names a directory with this project's programs.
const EnvPrograms = "KMSHARNESS_BIN"

// modulePath is where the programs are built from, if nobody built them before.
const modulePath = "github.com/kmsharness/kmsharness"

// Programs finds executables: a path as it is; this project's programs in EnvPrograms, beside the running executable, or
// built from the module that the working directory is in; anything else on PATH.
type Programs struct {
	dir      string // receives what is built
	progress func(string)
	// PluginArgs are further arguments of every fake plugin.
	PluginArgs []string

	mu    sync.Mutex
	found map[string]string
}

// NewPrograms builds what it does not find into dir.
func NewPrograms(dir string, progress func(string)) *Programs {
	return &Programs{dir: dir, progress: progress, found: map[string]string{}}
}

// own says which names are this project's.
func own(name string) bool {
	return name == "kms-health-reporter" || name == "kms-health-aggregator" || name == "fake-kms-plugin" ||
		name == "kmsharness-hold" || name == "kmsharness-proxy"
}

// Find is the path of a program.
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
	if strings.ContainsRune(name, filepath.Separator) {
		return exec.LookPath(name)
	}
	if !own(name) {
		return exec.LookPath(name)
	}
	if dir := os.Getenv(EnvPrograms); dir != "" {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w", EnvPrograms, dir, err)
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	return p.build(ctx, name)
}

func (p *Programs) build(ctx context.Context, name string) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", fmt.Errorf("it is not beside this executable, and cannot be built: %w: set %s to the directory that has it (make build)", err, EnvPrograms)
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

// moduleRoot is the directory of this project's go.mod, if the working directory is in it.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	path, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if path != modulePath || dir == "" {
		return "", errors.New("the working directory is not in the module " + modulePath)
	}
	return dir, nil
}
