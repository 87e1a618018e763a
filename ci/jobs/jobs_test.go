// Package jobs holds job files for CI systems, to be copied, and the tests that they call what the Makefile has.
//
// What does not live here: what a job does (the Makefile), and how to gate on it (ci/README.md).
package jobs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func readMakefile(t *testing.T) makefile {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	return parseMakefile(string(text))
}

func TestJobFilesCallWhatTheMakefileHas(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("look for job files: got %v, %v, want at least two", files, err)
	}
	mk := readMakefile(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems(text, mk) {
			t.Errorf("ci/jobs/%s: %s", file, p)
		}
	}
}

// Each of these would be green, or without evidence, on a day when it should not be.
func TestBadJobsAreCaught(t *testing.T) {
	mk := readMakefile(t)
	step := func(s string) string { return "jobs: {a: {steps: [" + s + "]}}" }
	for name, c := range map[string]struct{ file, want string }{
		"not YAML":           {"jobs: [", "not a job file"},
		"a key twice":        {"jobs: {}\njobs: {}", "already set"},
		"calls nothing":      {"jobs: {}", "calls no make target"},
		"unknown target":     {step("{run: make e2ee}"), `"e2ee" is not a target`},
		"unknown variable":   {step("{run: make e2e BACKND=kind}"), `BACKND is not a variable`},
		"second line":        {step(`{run: "make lint\nmake tset"}`), `"tset" is not a target`},
		"help only":          {step("{run: make BACKEND=kind}"), "names no target"},
		"errors ignored":     {step("{run: make -i test}"), `"-i" is not a target`},
		"failure swallowed":  {step("{run: make test || true}"), `"||" is not a target`},
		"not make":           {step("{run: go test ./...}"), "calls go"},
		"red looks green":    {step("{run: make test, continue-on-error: true}"), "continue-on-error"},
		"no evidence":        {step("{run: make test}, {uses: actions/upload-artifact@v6}"), "if: always()"},
		"Prow, target":       {"spec: {containers: [{command: [runner.sh], args: [make, e2ee]}]}", `"e2ee" is not a target`},
		"Prow, not make":     {"spec: {containers: [{args: [ci/lint.sh]}]}", "calls ci/lint.sh"},
		"Prow, command only": {"spec: {containers: [{command: [make, tset]}]}", `"tset" is not a target`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(problems([]byte(c.file), mk), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want it to contain %q", got, c.want)
			}
		})
	}
}

func TestGoodJobsPass(t *testing.T) {
	mk := readMakefile(t)
	for _, file := range []string{
		`jobs: {a: {defaults: {run: {shell: bash}}, steps: [{run: make lint test}]}}`,
		`jobs: {a: {steps: [{run: "make e2e LABELS='area:plugin || slow'"}, {uses: actions/upload-artifact@v6, if: always()}]}}`,
		`spec: {containers: [{command: [runner.sh], args: [make, e2e, "LABELS=a || b"]}]}`,
	} {
		if got := problems([]byte(file), mk); len(got) > 0 {
			t.Errorf("%s: %q", file, got)
		}
	}
}
