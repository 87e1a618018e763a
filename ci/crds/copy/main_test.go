package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The embedded copies are the module's files, byte for byte, and nothing else.
func TestCopiesEqualTheModule(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir); err != nil {
		t.Fatal(err)
	}
	want, got := read(t, dir), read(t, "..")
	for name, data := range want {
		if got[name] != data {
			t.Errorf("%s differs from the module's file: run go generate ./ci/crds", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not one of the module's files that are copied", name)
		}
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(data)
	}
	return out
}
