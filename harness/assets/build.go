package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/harness/process"
)

var errNoGo = errors.New("the go command is not in PATH: install Go")

// build makes etcd and kube-apiserver. The caller holds the lock.
func (c *cache) build(ctx context.Context, progress func(string)) (Binaries, error) {
	begin := time.Now()
	switch err := c.make(ctx, progress); {
	case errors.Is(err, errNoGo):
		return Binaries{}, fmt.Errorf("build them: %w, or set %s to a directory with etcd and kube-apiserver", err, EnvAssets)
	case err != nil:
		return Binaries{}, fmt.Errorf("build them: %w", err)
	}
	b, ok := c.find()
	if !ok {
		return Binaries{}, fmt.Errorf("build them: go build made no programs in %s", c.result())
	}
	b.Origin = fmt.Sprintf("built from Go modules in %v, kept in %s", time.Since(begin).Round(time.Second), c.result())
	return b, nil
}

// make leaves the recipe's programs in the cache. The caller holds the lock.
func (c *cache) make(ctx context.Context, progress func(string)) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return errNoGo
	}
	// A fixed name: what a builder that was killed left is removed by the next one.
	work := filepath.Join(c.dir, "building-"+c.recipe.key())
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := c.recipe.write(work); err != nil {
		return err
	}
	progress(fmt.Sprintf("building %s %s from Go modules, once: %s", c.recipe.what, c.recipe.version, c.recipe.takes))
	if err := c.compile(ctx, tool, work, progress); err != nil {
		return err
	}
	return c.publish(work)
}

// publish moves the programs into place in one step.
func (c *cache) publish(work string) error {
	if err := os.RemoveAll(c.result()); err != nil { // incomplete, or find would have taken it
		return err
	}
	if err := os.Rename(filepath.Join(work, "bin"), c.result()); err != nil {
		return err
	}
	return os.RemoveAll(work)
}

// compile runs the go command, which has children of its own. GOFLAGS of the caller do not apply: build tags of this project are none of Kubernetes'.
func (c *cache) compile(ctx context.Context, tool, work string, progress func(string)) error {
	begin, log := time.Now(), filepath.Join(work, "build.log")
	spec := process.Spec{Name: "go build", Path: tool, Args: c.recipe.args(filepath.Join(work, "bin")), Env: append(c.recipe.env(), "GOFLAGS="), Dir: work, LogFile: log}
	return process.Run(ctx, spec, func() { progress(fmt.Sprintf("building: %v, %s", time.Since(begin).Round(time.Second), howFar(log))) })
}

// howFar reads a log of go build -v: one line for each package as it is compiled, "go: downloading …" before.
func howFar(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	compiled, last := 0, "starting"
	for line := range strings.Lines(strings.TrimSpace(string(text))) {
		line = strings.TrimSpace(line)
		last = strings.TrimPrefix(line, "go: ")
		if last == line {
			compiled++
		}
	}
	return fmt.Sprintf("%d packages compiled, now %s", compiled, last)
}
