package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/conformance"
	"github.com/kmsharness/kmsharness/conformance/plugin"
	fake "github.com/kmsharness/kmsharness/fakeplugin/cli"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/program"
)

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

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
	for code := -1; code != program.ExitPassed; { // each try waits for a connection
		if code, _, _ = run(t, "preflight", "--endpoint", at); t.Context().Err() != nil {
			t.Fatal("the plugin does not serve")
		}
	}
	return at
}

// TestPartialRunIsNoConformance: neither a run of some checks nor a report from which results were cut is conformant.
func TestPartialRunIsNoConformance(t *testing.T) {
	at, out := servePlugin(t), t.TempDir()
	code, text, problem := run(t, "conform", "plugin", "--endpoint", at, "--focus", "KMS2-STATUS-VERSION$", "--out", out)
	if code != program.ExitCouldNotRun || !strings.Contains(problem, "partial: 19 checks of these profiles were not run") || !strings.Contains(text, "partial") {
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
	if code, text, problem = run(t, "conform", "render", "-o", "markdown", out); code != program.ExitPassed || !strings.Contains(text, ": partial (plugin)") {
		t.Errorf("a report that was cut: exit %d, %q\n%s", code, problem, text)
	}
	if code, text, problem = run(t, "conform", "plugin", "--endpoint", at, "--profile", "core", "--out", out); code != program.ExitPassed {
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
		code, text, problem := run(t, "conform", "plugin", "--endpoint", "unix:///nowhere/kms.sock", "--out", out)
		if code != program.ExitCouldNotRun || !strings.Contains(problem, want) {
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
		code, text, problem := run(t, append(args, "--plugin-command", "sh -c 'echo no token >&2; exit 3' {socket}")...)
		if code != program.ExitFailed || !strings.Contains(problem, "the process ended: exit code 3; its last output: no token") {
			t.Errorf("%v: exit %d, %q\n%s", args, code, problem, text)
		}
	}
}

// TestManifest: one file says where the plugin is, what is to be checked, and how reports name it. Flags override it.
func TestManifest(t *testing.T) {
	at, dir := servePlugin(t), t.TempDir()
	manifest := filepath.Join(dir, "plugin.yaml")
	log := filepath.Join(dir, "plugin.log")
	text := "apiVersion: kmsharness.io/v1alpha1\nkind: SystemUnderTest\nplugin: {endpoint: '" + at + "', profile: core, log: " + log + ", name: mine, version: v1, organization: us}\n"
	for file, text := range map[string]string{manifest: text, log: "started\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out")
	if code, text, problem := run(t, "conform", "plugin", "--manifest", manifest, "--out", out); code != program.ExitPassed {
		t.Fatalf("exit %d, %q\n%s", code, problem, text)
	}
	report, err := conformance.ReadReport(filepath.Join(out, "report.yaml"), func(string) []conformance.Check { return PluginRules() })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := report.Implementation, (conformance.Implementation{Name: "mine", Version: "v1", Organization: "us"}); got != want || len(report.Profiles) != 1 || !slices.Contains(report.Capabilities, plugin.Log) {
		t.Errorf("%+v, %d profiles, %v", got, len(report.Profiles), report.Capabilities)
	}
	if want := conformance.NewReport(Plugin, PluginRules(), 1).SuiteHash; report.Suite != Plugin || report.SuiteHash != want || report.Versions["kmsharness"] == "" {
		t.Errorf("suite %q, %q, %v, want %q", report.Suite, report.SuiteHash, report.Versions, want)
	}
	if code, text, problem := run(t, "conform", "plugin", "--manifest", manifest, "--endpoint", "unix:///nowhere/kms.sock", "--out", ""); code != program.ExitCouldNotRun || !strings.Contains(problem, "no plugin at unix:///nowhere/kms.sock") {
		t.Errorf("another endpoint: exit %d, %q\n%s", code, problem, text)
	}
	if code, _, problem := run(t, "preflight", "--manifest", manifest+".yml"); code != program.ExitCouldNotRun || !strings.Contains(problem, "--manifest open ") {
		t.Errorf("no file: exit %d, %q", code, problem)
	}
	if code, text, problem := run(t, "preflight", "--manifest", manifest); code != program.ExitPassed || !strings.Contains(text, "mine: usable") {
		t.Errorf("preflight: exit %d, %q\n%s", code, problem, text)
	}
}

// TestReportsOfUnknownSuites: nobody could say which of their checks are absent.
func TestReportsOfUnknownSuites(t *testing.T) {
	r := conformance.NewReport("reporter", nil, 1)
	file := filepath.Join(t.TempDir(), "report.yaml")
	if err := atomicfile.WriteTo(file, r.Write); err != nil {
		t.Fatal(err)
	}
	if code, _, problem := run(t, "conform", "render", file); code != program.ExitCouldNotRun || !strings.Contains(problem, `suite "reporter": expected plugin`) {
		t.Errorf("exit %d, %q", code, problem)
	}
}
