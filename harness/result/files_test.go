package result_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kmsharness/kmsharness/harness/result"
)

// TestSetAside: everything of the first try is kept, and a second time nothing is lost.
func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{result.ResultFile, "logs/etcd.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := result.SetAside(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{result.ResultFile, "logs/etcd.log"} {
			if data, err := os.ReadFile(filepath.Join(dir, result.FirstTryDir, name)); err != nil || string(data) != name {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
