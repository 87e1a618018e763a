package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"time"

	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/program"
)

// told runs a command in a folder of its own, and gives what it said.
func told(t *testing.T, in string, args ...string) (code int, out, problem string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := Command(standard.Extensions{})
	root.SetArgs(args)
	root.SetIn(strings.NewReader(in))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(t.Context())
	if err != nil {
		problem = err.Error()
	}
	return program.ExitCode(err), stdout.String(), problem
}

// What new writes has no mistakes, whichever way the words came; and it destroys nothing.
func TestNewScenario(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	t.Chdir(t.TempDir())
	code, out, problem := told(t, "A hung Status of one plugin is seen.\nplugin\n", "scenario", "new", "one-hangs")
	if code != program.ExitPassed || !strings.Contains(out, "What must hold") || !strings.Contains(out, "one-hangs.yaml has the steps of plugin-hangs") {
		t.Fatalf("exit %d: %s%s", code, out, problem)
	}
	if code, out, problem = told(t, "", "scenario", "lint", "one-hangs.yaml"); code != program.ExitPassed || out != "1 scenario without mistakes\n" {
		t.Errorf("exit %d: %s%s", code, out, problem)
	}
	for want, args := range map[string][]string{
		"one-hangs.yaml exists already":      {"one-hangs", "--title", "X.", "--area", "plugin"},
		`--area "plugins": expected one of`:  {"x", "--title", "X.", "--area", "plugins"},
		`--from nonsense: no file or folder`: {"x", "--title", "X.", "--area", "plugin", "--from", "nonsense"},
		"title: no answer (or use --title)":  {"x", "--area", "plugin"},
		`name is "Bad_Name"`:                 {"Bad_Name", "--title", "X.", "--area", "plugin"},
	} {
		if code, _, problem := told(t, "", append([]string{"scenario", "new"}, args...)...); code != program.ExitCouldNotRun || !strings.Contains(problem, want) {
			t.Errorf("%v: exit %d, %q, expected %q", args, code, problem, want)
		}
	}
	if _, err := os.Stat("x.yaml"); err == nil {
		t.Error("a mistake left a file")
	}
}

// Names of the catalogue are taken where files are; the command that reproduces a run has the name, too.
func TestScenariosByName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, command := range []string{"lint", "list", "explain"} {
		if code, out, problem := told(t, "", "scenario", command, "plugin-hangs"); code != program.ExitPassed || out == "" {
			t.Errorf("%s: exit %d, %s%s", command, code, out, problem)
		}
	}
	if code, out, problem := told(t, "", "run", "--backend", "sim", "plugin-hangs"); code != program.ExitPassed {
		t.Errorf("exit %d, %s%s", code, out, problem)
	}
	all, err := load(standard.Extensions{}, []string{"plugin-hangs"})
	if err != nil {
		t.Fatal(err)
	}
	var c common
	c.register(&cobra.Command{})
	c.backend = "sim"
	if !strings.HasPrefix(c.reproduce(all[0]), "kmsharness run plugin-hangs --backend sim") {
		t.Errorf("%s", c.reproduce(all[0]))
	}
}

// Editors and CI find the place at the beginning of each line.
func TestLintLines(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("bad.yaml", []byte("apiVersion: x\nkind: y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := command(t, "scenario", "lint", "bad.yaml")
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	if code != program.ExitCouldNotRun || len(lines) < 2 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "bad.yaml:") {
			t.Errorf("%q: expected the place first", line)
		}
	}
}

func TestExampleOfNewScenario(t *testing.T) {
	_, from, _ := strings.Cut(newScenarioNewCommand(standard.Extensions{}).Example, "--from ")
	if _, err := load(standard.Extensions{}, []string{from}); err != nil {
		t.Error(err)
	}
}

func TestExplainScenario(t *testing.T) {
	code, out, problem := told(t, "", "scenario", "explain", "plugin-hangs")
	if code != program.ExitPassed {
		t.Fatal(problem)
	}
	for _, want := range []string{"3 nodes with plugins 1", "inject plugin cp-2/* fault=hang method=Status", "within detection: rollup.degraded.status", "for 6I always:", "●━━━"} {
		if !strings.Contains(out, want) {
			t.Errorf("expected %q in\n%s", want, out)
		}
	}
	if code, _, problem := told(t, "", "scenario", "explain", "nonsense"); code != program.ExitCouldNotRun || !strings.Contains(problem, "nonsense") {
		t.Errorf("exit %d: %s", code, problem)
	}
}

func TestListScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	code, out, problem := told(t, "", "scenario", "list", "--area", "sno")
	if code != program.ExitPassed || !strings.Contains(out, "1 node") || !strings.Contains(out, "sim local kind") || strings.Contains(out, "network") {
		t.Errorf("exit %d: %s%s", code, out, problem)
	}
	if code, _, problem := told(t, "", "scenario", "list", "--area", "nonsense"); code != program.ExitCouldNotRun || !strings.Contains(problem, "expected one of") {
		t.Errorf("exit %d: %s", code, problem)
	}
}

// A saved file is simulated again; a mistake in it ends nothing.
func TestWatchScenario(t *testing.T) {
	t.Chdir(t.TempDir())
	const good = "apiVersion: kmsharness.io/v1alpha1\nkind: Scenario\nmetadata: {name: w, title: It holds., area: plugin}\nspec:\n  steps:\n  - data: {op: write}\n  - wait: 1I\n"
	save := func(text string) {
		if err := os.WriteFile("w.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	save(good)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &signalled{said: make(chan string, 100)}
	var running sync.WaitGroup
	running.Go(func() { Main(ctx, []string{"scenario", "watch", "w.yaml"}, out, out) })
	defer running.Wait()
	defer cancel()
	for _, step := range []struct{ text, want string }{{"", "PASSED"}, {strings.Replace(good, "wait", "wiat", 1), "did you mean \"wait\"?"}, {good, "PASSED"}} {
		if step.text != "" {
			save(step.text)
		}
		out.until(ctx, t, strings.ToLower(step.want))
	}
}

// signalled tells of every line that is written to it.
type signalled struct{ said chan string }

func (s *signalled) Write(b []byte) (int, error) {
	s.said <- string(b)
	return len(b), nil
}

func (s *signalled) until(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	for {
		select {
		case line := <-s.said:
			if strings.Contains(strings.ToLower(line), want) {
				return
			}
		case <-ctx.Done():
			t.Fatalf("%q was never said", want)
		}
	}
}

// The schema and the faults are those of the code.
func TestReferences(t *testing.T) {
	if code, out, problem := told(t, "", "scenario", "fields", "-o", "json"); code != program.ExitPassed || !strings.Contains(out, `"socket-stale"`) {
		t.Errorf("exit %d: %s", code, problem)
	}
	if code, out, problem := told(t, "", "faults"); code != program.ExitPassed || !strings.Contains(out, "hang") {
		t.Errorf("exit %d: %s%s", code, out, problem)
	}
}

// The tables have the fields of the schema, the titles of the catalogue and the statements of the sources.
func TestTables(t *testing.T) {
	for want, args := range map[string][]string{
		"steps[].link.rate ":           {"fields", "link"},
		"spec.topology.controlPlanes ": {"fields"},
		"A hung Status is an error":    {"list", "--area", "plugin", "-o", "wide"},
		"S0-16  covered  sim local ":   {"list", "--statements"},
		`"wrong": "indented"`:          {"list", "--statements", "-o", "json"},
	} {
		if code, out, problem := told(t, "", append([]string{"scenario"}, args...)...); code != program.ExitPassed || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d, %s%s, expected %q", args, code, out, problem, want)
		}
	}
	for want, args := range map[string][]string{`no field has "nonsense"`: {"fields", "nonsense"}, `"xml" for "-o, --output" flag: expected json, yaml or wide`: {"list", "-o", "xml"}} {
		if code, _, problem := told(t, "", append([]string{"scenario"}, args...)...); code != program.ExitCouldNotRun || !strings.Contains(problem, want) {
			t.Errorf("%v: exit %d, %q, expected %q", args, code, problem, want)
		}
	}
}
