package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/internal/program"
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
	code, err := conclude(ctx, &out, &printer.Output{}, dir, "local", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String()
}

// Every output has the same counts, also of scenarios whose process was killed in the middle of a line of their history, or before a result.
func TestOneSetOfResults(t *testing.T) {
	dir := t.TempDir()
	for name, status := range map[string]string{"a": "passed", "b": "interrupted", "c": "not begun", "d": "not begun", "e": ""} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := `{"scenario":"` + name + `","area":"plugin","backend":"local","status":"` + status + `","began":"2026-01-01T00:00:00Z","reasons":["because"]}`
		if status != "" {
			if err := os.WriteFile(filepath.Join(dir, name, "result.json"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if name == "b" || name == "e" {
			if err := os.WriteFile(filepath.Join(dir, name, "history.jsonl"), []byte(`{"seq":1,"ki`), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out bytes.Buffer
	if code, err := conclude(t.Context(), &out, &printer.Output{}, dir, "local", time.Now()); err != nil || code != program.ExitCouldNotRun {
		t.Fatalf("exit code %d, %v", code, err)
	}
	counts := "1 passed, 0 failed, 0 not supported, 1 COULD NOT RUN, 1 interrupted, 2 NOT BEGUN"
	for file, wants := range map[string][]string{
		"":             {"e2e: " + counts + " on local", "not begun, because because: c, d\n"},
		"junit.xml":    {`<testsuites tests="5" failures="0" errors="1" skipped="3"`},
		"summary.md":   {"**" + counts + "** on"},
		"summary.json": {`"could not run": 1,`, `"failed": 0,`, `"interrupted": 1,`, `"not begun": 2,`, `"passed": 1`},
		"index.html":   {counts},
	} {
		text := out.String()
		if file != "" {
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%.3000s", file, want, text)
			}
		}
	}
}

func TestAnInterruptIsNoVerdict(t *testing.T) {
	for _, test := range []struct {
		interrupted bool
		statuses    []string
		want        int
	}{
		{false, []string{"passed"}, program.ExitPassed},
		{false, nil, program.ExitFailed}, // nothing ran
		{true, []string{"passed"}, program.ExitCouldNotRun},
		{true, nil, program.ExitCouldNotRun},
		{true, []string{"passed", "failed"}, program.ExitFailed}, // what was seen stays
		{false, []string{"passed", "inconclusive"}, program.ExitCouldNotRun},
		{false, []string{"passed", "interrupted"}, program.ExitCouldNotRun},
		{false, []string{"inconclusive", "failed", "interrupted"}, program.ExitFailed},
	} {
		code, text := concluded(t, test.interrupted, test.statuses...)
		if code != test.want || strings.Contains(text, "interrupted:") != test.interrupted {
			t.Errorf("interrupted %v, %v: code %d, want %d:\n%s", test.interrupted, test.statuses, code, test.want, text)
		}
	}
}
