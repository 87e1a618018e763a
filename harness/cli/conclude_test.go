package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// concluded is the exit code and the text for results, interrupted or not.
func concluded(t *testing.T, interrupted bool, statuses ...string) (int, string) {
	t.Helper()
	dir := t.TempDir()
	for i, status := range statuses {
		name := filepath.Join(dir, string(rune('a'+i)))
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		text := `{"name":"` + filepath.Base(name) + `","area":"plugin","backend":"local","status":"` + status + `","began":"2026-01-01T00:00:00Z"}`
		if err := os.WriteFile(filepath.Join(name, "result.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if interrupted {
		cancel()
	}
	var out bytes.Buffer
	code, err := conclude(ctx, &out, dir, "local", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String()
}

func TestAnInterruptIsNoVerdict(t *testing.T) {
	for _, test := range []struct {
		interrupted bool
		statuses    []string
		want        int
	}{
		{false, []string{"passed"}, ExitPassed},
		{false, nil, ExitFailed}, // nothing ran
		{true, []string{"passed"}, ExitCouldNotRun},
		{true, nil, ExitCouldNotRun},
		{true, []string{"passed", "failed"}, ExitFailed}, // what was seen stays
		{false, []string{"passed", "inconclusive"}, ExitCouldNotRun},
		{false, []string{"passed", "interrupted"}, ExitCouldNotRun},
		{false, []string{"inconclusive", "failed", "interrupted"}, ExitFailed},
	} {
		code, text := concluded(t, test.interrupted, test.statuses...)
		if code != test.want || strings.Contains(text, "interrupted:") != test.interrupted {
			t.Errorf("interrupted %v, %v: code %d, want %d:\n%s", test.interrupted, test.statuses, code, test.want, text)
		}
	}
}
