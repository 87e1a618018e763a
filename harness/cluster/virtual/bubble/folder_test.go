package bubble

import (
	"os"
	"path/filepath"
	"testing"
)

// A folder has the same path each time, and nothing is left of it.
func TestFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var paths [2]string
	for i := range paths {
		dir, remove, err := MakeFolder()
		if err != nil {
			t.Fatal(err)
		}
		paths[i] = dir
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
			t.Error(err)
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is there", dir)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); paths[0] != paths[1] || err != nil || len(left) > 0 {
		t.Errorf("%v; left %v, %v", paths, left, err)
	}
}
