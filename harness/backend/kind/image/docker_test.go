package image

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pulling makes docker pull a shell script.
func pulling(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestPullGivesUpOnASilentRegistry(t *testing.T) {
	pulling(t, "exec sleep 100")
	err := pull(t.Context(), "x", 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "no answer from a registry") {
		t.Errorf("%v", err)
	}
}

func TestPullWaitsForALongAnswer(t *testing.T) {
	pulling(t, "echo v1: Pulling from x; sleep 0.5; echo done")
	if err := pull(t.Context(), "x", 250*time.Millisecond); err != nil {
		t.Error(err)
	}
}

func TestPullEndsWithItsContext(t *testing.T) {
	pulling(t, "echo v1: Pulling from x; exec sleep 100")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := pull(ctx, "x", time.Minute); err == nil {
		t.Error("an endless pull ended well")
	}
}
