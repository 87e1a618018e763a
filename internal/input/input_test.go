package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, pipe, "/dev/null"} {
		if f, err := Open(name); f != nil || err == nil || !strings.Contains(err.Error(), name+": expected a regular file, or - for standard input") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f, err := Open("-"); err != nil || f != os.Stdin {
		t.Errorf("standard input: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}
