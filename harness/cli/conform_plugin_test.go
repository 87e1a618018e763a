package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fake "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/internal/host"
)

// servePlugin serves the fake plugin until the test ends, and returns its endpoint.
func servePlugin(t *testing.T) string {
	t.Helper()
	at := "unix://" + filepath.Join(t.TempDir(), "kms-1.sock")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		ended <- fake.Main(ctx, host.Host{}, []string{"serve", "--listen", at}, &bytes.Buffer{}, &stderr)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("the plugin ended with %d: %s", code, stderr.String())
		}
	})
	for code := -1; code != ExitPassed; { // each try waits for a connection
		if code, _, _ = told(t, "", "preflight", "--endpoint", at); t.Context().Err() != nil {
			t.Fatal("the plugin does not serve")
		}
	}
	return at
}

// TestPartialRunIsNoConformance: neither a run of some checks nor a report from which results were cut is conformant.
func TestPartialRunIsNoConformance(t *testing.T) {
	at, out := servePlugin(t), t.TempDir()
	code, text, problem := told(t, "", "conform", "plugin", "--endpoint", at, "--focus", "KMS2-STATUS-VERSION$", "--out", out)
	if code != ExitCouldNotRun || !strings.Contains(problem, "partial: 19 checks of these profiles were not run") || !strings.Contains(text, "partial") {
		t.Errorf("a run of one check: exit %d, %q\n%s", code, problem, text)
	}
	file := filepath.Join(out, "report.yaml")
	report, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := bytes.ReplaceAll(bytes.ReplaceAll(report, []byte("  notRun: 19\n"), nil), []byte("conformant: false"), []byte("conformant: true"))
	if err := os.WriteFile(file, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text, problem = told(t, "", "conform", "render", "-o", "markdown", out); code != ExitPassed || !strings.Contains(text, ": partial (plugin)") {
		t.Errorf("a report that was cut: exit %d, %q\n%s", code, problem, text)
	}
	if code, text, problem = told(t, "", "conform", "plugin", "--endpoint", at, "--profile", "core", "--out", out); code != ExitPassed {
		t.Errorf("all checks of a profile: exit %d, %q\n%s", code, problem, text)
	}
}

// TestConformPluginChecksOutFirst: a folder with files of somebody else, and one that cannot be written, are refused before the plugin is asked.
func TestConformPluginChecksOutFirst(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.md")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{dir: "holds files that no earlier run made", filepath.Join(file, "out"): "not a directory"} {
		code, text, problem := told(t, "", "conform", "plugin", "--endpoint", "unix:///nowhere/kms.sock", "--out", out)
		if code != ExitCouldNotRun || !strings.Contains(problem, want) {
			t.Errorf("--out %s: exit %d, %q, want %q\n%s", out, code, problem, want, text)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("a file of somebody else: %q, %v", text, err)
	}
}

// TestPluginThatEndsAtItsStart is at fault: its exit code and its output are shown, and the command ends with 1.
func TestPluginThatEndsAtItsStart(t *testing.T) {
	for _, args := range [][]string{{"conform", "plugin", "--out", ""}, {"preflight"}} {
		code, text, problem := told(t, "", append(args, "--plugin-command", "sh -c 'echo no token >&2; exit 3' {socket}")...)
		if code != ExitFailed || !strings.Contains(problem, "the process ended: exit code 3; its last output: no token") {
			t.Errorf("%v: exit %d, %q\n%s", args, code, problem, text)
		}
	}
}
