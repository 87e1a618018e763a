package main

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxBytes of the program: it is mounted into every container under test, and copied into every node.
const maxBytes = 10 << 20

// It runs in images without a loader and without libraries.
func TestTheProgramIsSmallAndStatic(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "kmsharness-supervisor")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil || info.Size() > maxBytes {
		t.Errorf("%v: more than %d bytes, %v", info.Size(), maxBytes, err)
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
	err = exec.Command(program, "--control", "unix:///@kmsharness-supervisor-"+filepath.Base(filepath.Dir(dir)),
		"--journal", filepath.Join(dir, "journal"), "--log", filepath.Join(dir, "log"), "--", "/bin/sh", "-c", "exit 3").Run()
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("%v, want the program's exit code 3", err)
	}
}
