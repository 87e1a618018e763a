package outside

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestModuleOutside: what is exported is enough for a module of somebody else.
func TestModuleOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("links a test program; make simulations has it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own_test.go", "manager_test.go", "extensions_test.go"} {
		if err := os.Rename(filepath.Join(dir, name+".txt"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	examples := filepath.Join(dir, "examples")
	if err := os.Mkdir(examples, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"controller_test.go", "kmsplugin_test.go"} { // what the documentation shows works outside, too
		data, err := os.ReadFile(filepath.Join(root, "harness/virtualcluster", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(examples, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} { // the same versions of all dependencies
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"mod", "edit", "-module=example.com/own", "-require=github.com/kmsharness/kmsharness@v0.0.0", "-replace=github.com/kmsharness/kmsharness=" + root},
		{"test", "-mod=mod", "-vet=off", "-count=1", "./..."},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
}
