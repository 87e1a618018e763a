package outdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A second run into a folder is refused on one line that names the first, and touches nothing; after the first it empties the folder.
func TestAFolderIsLockedDuringARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	unlock, err := Prepare("first", dir)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "result")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Prepare("second", dir)
	if err == nil {
		t.Fatalf("second run: %v", err)
	}
	if text := err.Error(); !strings.Contains(text, fmt.Sprintf("(process %d, first, since 20", os.Getpid())) || strings.Contains(text, "\n") {
		t.Errorf("second run: %q", text)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	unlock()
	unlock, err = Prepare("third", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := os.Stat(kept); err == nil {
		t.Error("the folder of the earlier run was not emptied")
	}
}

// TestNestedOutputFolders: a run accepts a folder in which another command wrote to a folder of its own, and keeps that.
func TestNestedOutputFolders(t *testing.T) {
	outer := t.TempDir()
	inner := filepath.Join(outer, "conformance-plugin")
	unlock, err := Prepare("conform", inner)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	report := filepath.Join(inner, "report.yaml")
	if err := os.WriteFile(report, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		unlock, err := Prepare("run", outer)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	}
	if !exists(report) {
		t.Error("the report of the other command is gone")
	}
}
