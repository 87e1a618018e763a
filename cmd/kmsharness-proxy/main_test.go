package main

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxBytes of the program: it is copied for every cluster.
const maxBytes = 10 << 20

// It runs in node images of any distribution, and tells mistakes by its exit code.
func TestTheProgramIsSmallAndStatic(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kmsharness-proxy")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxBytes {
		t.Errorf("%d bytes, expected at most %d", info.Size(), maxBytes)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it is linked dynamically")
		}
	}
	var exit *exec.ExitError
	if err := exec.Command(program, "--listen", "nowhere").Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("%v, want exit code 2", err)
	}
}
