// Package jobs holds job files for CI systems, to be copied, and the tests that they call what the Makefile has.
//
// What does not live here: what a job does (the Makefile), and how to gate on it (ci/README.md).
package jobs

import (
	"cmp"
	"os"
	"os/exec"
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
	gate, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	night, err := os.ReadFile("../gate/nightly.sh")
	if err != nil {
		t.Fatal(err)
	}
	mk.readStages(string(gate), string(night))
	if len(mk.night) < 20 || len(mk.gate) < 8 {
		t.Fatalf("%d stages of the night, %d of the gate", len(mk.night), len(mk.gate))
	}
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
	mk.readStages("stage lint 9 make lint\nstage typed 9 make e2e BACKEND=local LABELS='form && !slow' OUT=x", "stage unit 9 x\nstage stream 9 x\nstage local 9 x")
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
		"no evidence":        {step("{run: make test}, {uses: actions/upload-artifact@" + commit + "}"), "if: always()"},
		"action by tag":      {step("{uses: actions/checkout@v5}"), "expected a commit"},
		"input in a command": {step("{run: 'make e2e LABELS=\"${{ inputs.labels }}\"'}"), "pass it in env"},
		"stage of the gate":  {step("{run: make lint}, {run: make e2e BACKEND=local}"), "the gate's stage typed: make e2e BACKEND=local LABELS='form && !slow'"},
		"stage of the night": {"strategy: {matrix: {stages: [unit, local]}}", "the night's stage stream"},
		"unknown stage":      {"strategy: {matrix: {stages: [unti, stream]}}", "unti is not a stage"},
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

// Nothing in the value of a variable is executed, by make or by the shell of a recipe: a workflow passes its input on.
func TestValuesAreText(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const show = "#!/bin/sh\nprintf '%s\\n' \"$@\" \"$STAGES\"\n"
	write("Makefile", string(text))
	for _, name := range []string{"bin/go", "bin/kmsharness", "bin/mutants", "ci/fuzz.sh", "ci/gate/nightly.sh", "ci/release/release.sh"} {
		write(name, show)
	}
	targets := map[string]string{"KINDS": "readme", "FUZZTIME": "fuzz", "STAGES": "nightly", "VERSION": "release", "ARCHS": "release", "BACKEND": "mutants"}
	mk := readMakefile(t)
	for variable := range mk.variables {
		for _, value := range []string{"$(shell touch executed)", "'; touch executed; '"} {
			cmd := exec.Command("make", cmp.Or(targets[variable], "e2e"), variable+"="+value)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if os.Remove(filepath.Join(dir, "executed")) == nil || err != nil {
				t.Errorf("%v: it was executed, or %v\n%s", cmd.Args, err, out)
			}
		}
	}
}

// commit stands for that of an action.
var commit = strings.Repeat("0", 40)

func TestGoodJobsPass(t *testing.T) {
	mk := readMakefile(t)
	for _, file := range []string{
		`jobs: {a: {defaults: {run: {shell: bash}}, steps: [{run: make lint test}]}}`,
		`jobs: {a: {steps: [{run: "make e2e LABELS='area:plugin || slow'"}, {uses: actions/upload-artifact@` + commit + `, if: always()}]}}`,
		`spec: {containers: [{command: [runner.sh], args: [make, e2e, "LABELS=a || b"]}]}`,
	} {
		if got := problems([]byte(file), mk); len(got) > 0 {
			t.Errorf("%s: %q", file, got)
		}
	}
}
