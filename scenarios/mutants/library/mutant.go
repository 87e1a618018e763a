// Package library is mutants of harness/altsvc and of the streaming transport. No cluster brings out all that such a package promises, so its
// own tests judge it: a mutant is a changed line, and the test that must fail.
package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// All are the mutants.
func All() []Mutant { return slices.Concat(failover(), streams()) }

// Mutant is a package with one mistake.
type Mutant struct {
	Name    string
	Mistake string // one sentence
	// File, from the root of the module, has Old once, in place of which the mutant has New.
	File, Old, New string
	// Test, in the package of File, must fail.
	Test string
	// Statements of the sources that the mistake breaks. The comment of Test names each.
	Statements []string
}

// Outcome of a mutant.
type Outcome struct {
	Mutant
	Took time.Duration
	// Survived says why the mutant was not killed; empty: it was.
	Survived string
}

const (
	// testTimeout is for a test that ends within seconds. With some mistakes it would wait for ever, and is failed so.
	testTimeout = 20 * time.Second
	// tryTimeout bounds compilation as well.
	tryTimeout = 3 * time.Minute
)

// Try runs the test of a mutant. root is the module's directory, and dir one for files, which the caller removes. The source is not changed: the
// compiler is given another file in its place.
func (m Mutant) Try(ctx context.Context, root, dir string) Outcome {
	began := time.Now()
	err := m.try(ctx, root, dir)
	o := Outcome{Mutant: m, Took: time.Since(began)}
	if err != nil {
		o.Survived = err.Error()
	}
	return o
}

func (m Mutant) try(ctx context.Context, root, dir string) error {
	text, err := m.mutated(root)
	if err != nil {
		return err
	}
	changed, overlay := filepath.Join(dir, m.Name+".go"), filepath.Join(dir, m.Name+".json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.File): changed}})
	if err := errors.Join(err, os.WriteFile(changed, text, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return fmt.Errorf("write mutant %s: %w", m.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	test := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count=1", "-vet=off", "-timeout="+testTimeout.String(), "-run", "^"+m.Test+"$", "./"+filepath.Dir(m.File))
	test.Dir = root
	out, err := test.CombinedOutput()
	switch {
	case err == nil:
		return fmt.Errorf("expected %s of %s to fail", m.Test, filepath.Dir(m.File))
	case !bytes.Contains(out, []byte("--- FAIL: "+m.Test)) && !bytes.Contains(out, []byte("panic: test timed out")):
		return fmt.Errorf("expected %s to fail: %w\n%s", m.Test, err, bytes.TrimSpace(out))
	}
	return nil
}

// mutated is the file with the mistake.
func (m Mutant) mutated(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, fmt.Errorf("read what mutant %s changes: %w", m.Name, err)
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		return nil, fmt.Errorf("mutant %s: %s has %q %d times, expected once", m.Name, m.File, m.Old, n)
	}
	return []byte(strings.Replace(string(text), m.Old, m.New, 1)), nil
}
