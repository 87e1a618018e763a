package render_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/report"
	"github.com/kmsharness/kmsharness/harness/report/render"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

// wrong is an aggregator that forgets the ClusterOperator.
func wrong(t *testing.T) virtual.Options {
	t.Helper()
	m, err := mutants.Find("cluster-operator-forgotten")
	if err != nil {
		t.Fatal(err)
	}
	return m.Virtual()
}

// reproduce is as long as the command of a reporter under test.
const reproduce = "kmsharness run scenario.yaml --backend local --seed 1 --reporter-command '/usr/local/bin/my-reporter --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig} --interval={interval} --read-timeout={readTimeout}'"

// simulate runs scenarios of the catalogue into a folder.
func simulate(t *testing.T, out string, o virtual.Options, names ...string) {
	t.Helper()
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		all, err := parser.Load("../../../scenarios/catalogue/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		engine.Execute(context.Background(), virtual.New(o), all[0], engine.Execution{Out: out, Options: engine.Options{
			Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1, Reproduce: reproduce}})
	}
}

func write(t *testing.T, o render.Options) render.Written {
	t.Helper()
	w, err := render.Write(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Everything can be written again from the histories alone, and says the same.
func TestFromHistoriesAlone(t *testing.T) {
	out := t.TempDir()
	simulate(t, out, virtual.Options{}, "plugin-hangs")
	simulate(t, out, wrong(t), "plugin-unhealthy")
	first := write(t, render.Options{Dirs: []string{out}, Out: out, JUnit: true, Took: time.Second})
	junit := read(t, out, result.JUnitFile)
	for _, name := range []string{"plugin-hangs", "plugin-unhealthy"} {
		for _, file := range []string{result.ResultFile, result.VerdictFile, result.VerdictJSON} {
			if err := os.Remove(filepath.Join(out, name, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := write(t, render.Options{Dirs: []string{out}, Out: out, JUnit: true, Took: time.Second})
	for i, was := range first.Summary.Results {
		is := again.Summary.Results[i]
		if is.Scenario != was.Scenario || is.Title != was.Title || is.Area != was.Area || is.Status != was.Status || len(is.Failures) != len(was.Failures) || is.Reproduce != was.Reproduce {
			t.Errorf("%+v\nwas %+v", is, was)
		}
	}
	if first.Summary.Count(result.Passed) != 1 || first.Summary.Count(result.Failed) != 1 {
		t.Error(first.Summary.Line())
	}
	if names := `classname="kmsharness.plugin" name="plugin-unhealthy"`; !strings.Contains(junit, names) || !strings.Contains(read(t, out, result.JUnitFile), names) {
		t.Errorf("names of test cases:\n%s", read(t, out, result.JUnitFile))
	}
	if text := read(t, out, result.MarkdownFile); !strings.HasPrefix(text, "### ❌ kmsharness: 1 of 2 did not pass") || !strings.Contains(text, "plugin-unhealthy") {
		t.Error(text)
	}
	var machine report.Machine
	if err := json.Unmarshal([]byte(read(t, out, result.SummaryFile)), &machine); err != nil || machine.OK || len(machine.Runs) != 2 || machine.Runs[1].Invariants["UNION"] != "failed" {
		t.Errorf("%+v, %v", machine, err)
	}
	if machine.Runs[1].History != "plugin-unhealthy/history.jsonl" || machine.Runs[1].Page != "index.html#sim.plugin-unhealthy" {
		t.Errorf("%+v", machine.Runs[1])
	}
}

// Runs of several folders are columns of one page. Folders with the same backend are told apart.
func TestFoldersBecomeColumns(t *testing.T) {
	a, b, out := t.TempDir(), t.TempDir(), t.TempDir()
	simulate(t, a, virtual.Options{}, "plugin-hangs")
	simulate(t, b, wrong(t), "plugin-hangs")
	w := write(t, render.Options{Dirs: []string{a, b}, Out: out, JUnit: true})
	html := read(t, w.Page)
	for _, want := range []string{">sim " + a + "<", ">sim " + b + "<", "1 passed, 1 failed", "plugin-hangs/history.jsonl"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if _, err := os.Stat(filepath.Join(out, result.JUnitFile)); err == nil {
		t.Error("test cases of two columns have the same names")
	}
}

// A run that left half a history, none, or one that was judged otherwise, is shown with a word about it.
func TestOddFolders(t *testing.T) {
	out := t.TempDir()
	simulate(t, out, wrong(t), "plugin-hangs")
	broken := filepath.Join(out, "broken")
	if err := os.Mkdir(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, result.HistoryFile), []byte("{\"seq\":1"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"timeless": result.HistoryFile, "damaged": result.ResultFile} {
		if err := os.Mkdir(filepath.Join(out, name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := `{"seq":1,"kind":"run","run":{"schema":"` + history.Schema + `"}}`
		if err := os.WriteFile(filepath.Join(out, name, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "damaged", result.ResultFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (result.Result{Scenario: "unsupported", Backend: "sim", Status: result.NotSupported, Reasons: []string{"no engine"}}).Save(filepath.Join(out, "unsupported")); err != nil {
		t.Fatal(err)
	}
	saved, err := result.ReadResult(filepath.Join(out, "plugin-hangs", result.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	saved.Status = result.Passed
	if err := saved.Save(filepath.Join(out, "plugin-hangs")); err != nil {
		t.Fatal(err)
	}
	w := write(t, render.Options{Dirs: []string{out}, Out: out})
	html := read(t, w.Page)
	for _, want := range []string{"line 1: not a history event", "line 1: timing: interval 0s", "The saved result is not used", "no engine", "When it was run its result was passed; from the same history it is failed now."} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if got := w.Summary.ExitCode(); got != report.ExitFailed {
		t.Errorf("exit code %d", got)
	}
	if _, err := render.Write(render.Options{Dirs: []string{filepath.Join(out, "none")}, Out: out}); err == nil || !strings.Contains(err.Error(), "expected the output folder of a run") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
