package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/trace"
	"github.com/kmsharness/kmsharness/internal/program"
)

// A simulated run is traced: everything, one operation, an object, and what OpenTelemetry gets.
func TestTrace(t *testing.T) {
	dir := t.TempDir()
	if code, out, errs := invoke(t, "run", "--backend", "sim", "--out", dir, "../../scenarios/catalogue/uid-followed.yaml"); code != program.ExitPassed {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	run := filepath.Join(dir, "uid-followed")
	code, all, errs := invoke(t, "trace", run, "-o", "json", "--otlp-json", filepath.Join(dir, "traces.json"))
	var tr trace.Trace
	if err := json.Unmarshal([]byte(all), &tr); code != program.ExitPassed || err != nil || len(tr.Operations) < 3 || len(tr.Uncorrelated()) > 0 {
		t.Fatalf("%d %v\n%s%s", code, err, all, errs)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "traces.json")); err != nil || !strings.Contains(string(text), `"resourceSpans"`) {
		t.Errorf("%v", err)
	}
	uid := tr.Operations[0].UID
	for _, test := range [][]string{
		{uid, "trace", dir, uid}, {uid, "trace", filepath.Join(run, "history.jsonl"), uid[:12]}, {"followed through all parties", "trace", run},
		{"TOOK", "trace", run, "--slowest", "2"}, {"Every envelope operation was followed", "trace", run, "--uncorrelated"},
		{"its key was sealed by encrypt", "trace", run, "--object", "secrets/default/data-1"},
	} {
		if code, out, errs := invoke(t, test[1:]...); code != program.ExitPassed || !strings.Contains(out, test[0]) {
			t.Errorf("%v: %d\n%s%s", test[1:], code, out, errs)
		}
	}
}

func TestTraceNamesMistakes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, s := range []string{"uid-followed", "uid-older-apiserver"} {
		folder := filepath.Join("runs", s)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "history.jsonl"), []byte(`{"seq":1,"kind":"run","run":{"schema":"kmsharness.io/history/v1","timing":{"interval":1000000000,"jitter":0,"probeTimeout":1000000000,"writeTimeout":1000000000,"aggregatorLatency":1000000000}}}`+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	one := filepath.Join("runs", "uid-followed")
	for want, args := range map[string][]string{
		"there is no run below _artifacts":                 {"trace", "5e3aa1c2"},
		"none: no such file or directory: name the folder": {"trace", "none", "5e3aa1c2"},
		"runs holds 2 runs, runs/uid-followed among them":  {"trace", "runs"},
		"choose one of UID, --object, --slowest":           {"trace", one, "u", "--slowest", "3"},
		"--slowest 0: expected 1 or more":                  {"trace", one, "--slowest", "0"},
		`no operation with uid "u": this history has no`:   {"trace", one, "u"},
		`no object "secrets/a/b": this history has no`:     {"trace", one, "--object", "secrets/a/b"},
	} {
		code, out, errs := invoke(t, args...)
		if code != program.ExitCouldNotRun || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d, %q%q, want %q", args, code, out, errs, want)
		}
	}
}
