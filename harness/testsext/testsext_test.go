package testsext

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/bubble"
	"github.com/kmsharness/kmsharness/internal/program"
)

func TestMain(m *testing.M) { bubble.Main(func() { os.Exit(m.Run()) }) }

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// again decodes JSON without a field that T does not have, and encodes it again.
func again[T any](t *testing.T, text []byte) (v T, encoded string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return v, string(out)
}

// TestRecordedOutput: what example-tests of openshift-tests-extension (commit 2fd5b2fa) printed has the fields of these types and no others.
func TestRecordedOutput(t *testing.T) {
	equal := func(text []byte, got string) {
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil || got != want.String() {
			t.Errorf("%v: encoded again: %s\nwant %s", err, got, want.String())
		}
	}
	for file, of := range map[string]func(line []byte) string{
		"info.json":     func(line []byte) string { _, text := again[extension](t, line); return text },
		"list.jsonl":    func(line []byte) string { _, text := again[spec](t, line); return text },
		"results.jsonl": func(line []byte) string { _, text := again[result](t, line); return text },
	} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") {
			equal(text, of(text))
			continue
		}
		for line := range bytes.Lines(text) {
			equal(line, of(line))
		}
	}
}

func TestInfoAndLists(t *testing.T) {
	_, out, _ := run(t, "info")
	if x, _ := again[extension](t, []byte(out)); x.APIVersion != "v1.1" || x.Component.String() != "openshift:payload:kmsharness" || len(x.Suites) != 1 || x.Source.Commit == "" {
		t.Errorf("%+v", x)
	}
	code, out, errs := run(t, "list", "tests", "--component", "default", "--suite", suiteName, "--platform", "aws", "--feature-gate", "A", "-o", "jsonl")
	names := map[string]bool{}
	for line := range strings.Lines(out) {
		s, _ := again[spec](t, []byte(line))
		if names[s.Name] || !strings.Contains(s.Name, "[Suite:openshift/kms]") || s.Source != self().String() || s.Lifecycle != "blocking" {
			t.Errorf("%+v", s)
		}
		names[s.Name] = true
	}
	if code != 0 || len(names) < 200 || !names["[sig-auth][Feature:KMS] the plugin of a manifest conforms [Suite:openshift/kms] [Serial]"] {
		t.Errorf("exit %d, %d tests, %s", code, len(names), errs)
	}
	for args, want := range map[string]string{"list suites -o names": suiteName + "\n", "list components -o names": self().String() + "\n", "images": "[]\n"} {
		if code, out, errs := run(t, strings.Fields(args)...); code != 0 || out != want {
			t.Errorf("%s: exit %d, %q, %s", args, code, out, errs)
		}
	}
	for _, args := range []string{"list --suite openshift/other", "run-suite openshift/other", "run-test -n nothing"} {
		if code, out, errs := run(t, strings.Fields(args)...); code != program.ExitCouldNotRun || out != "" || errs == "" {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, errs)
		}
	}
}

const (
	conforms = "[sig-auth][Feature:KMS] the plugin of a manifest conforms [Suite:openshift/kms] [Serial]"
	hangs    = "[sig-auth][Feature:KMS] scenario plugin-hangs passes in virtual time [Suite:openshift/kms]"
)

// TestRunTest: a test passes, fails or is skipped, each on a line, and leaves its artifacts.
func TestRunTest(t *testing.T) {
	artifacts := t.TempDir()
	t.Setenv(artifactsVariable, artifacts)
	t.Setenv(manifestVariable, "")
	code, out, errs := run(t, "run-test", "-o", "jsonl", "-n", conforms, "-n", hangs)
	var got []string
	for line := range strings.Lines(out) {
		r, _ := again[result](t, []byte(line))
		got = append(got, r.Result)
	}
	if code != 0 || strings.Join(got, " ") != "skipped passed" {
		t.Errorf("exit %d, %v: %s\n%s", code, got, errs, out)
	}
	if _, err := os.Stat(filepath.Join(artifacts, "kmsharness", "run-plugin-hangs", "junit.xml")); err != nil {
		t.Error(err)
	}
	t.Setenv(manifestVariable, "/nowhere/plugin.yaml")
	code, out, _ = run(t, "run-test", conforms)
	var results []result
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != 1 || results[0].Result != failed || !strings.Contains(results[0].Error, "no verdict: kmsharness: --manifest open /nowhere/plugin.yaml") || code != program.ExitFailed {
		t.Errorf("exit %d, %+v", code, results)
	}
}

func TestJUnit(t *testing.T) {
	var out bytes.Buffer
	all := []result{{Name: "a", Result: passed}, {Name: "b", Result: skipped, Details: []detail{{"skipped", "why"}}}, {Name: "c", Result: failed, Error: "broken"}}
	if err := writeJUnit(&out, suiteName, all); err != nil || !strings.Contains(out.String(), `tests="3" failures="1" errors="0" skipped="1"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}
