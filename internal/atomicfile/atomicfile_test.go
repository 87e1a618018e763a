package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two"} {
		if err := atomicfile.Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, want %q", got, err, text)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v: expected the file alone", left, err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "no", "f"), nil, 0o600); err == nil {
		t.Error("no error for a folder that does not exist")
	}
}
