package jobs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// actionFile is action.yml, as far as it can be executed without a runner.
type actionFile struct {
	Inputs map[string]struct {
		Default string `json:"default"`
	} `json:"inputs"`
	Runs struct {
		Using string       `json:"using"`
		Steps []actionStep `json:"steps"`
	} `json:"runs"`
}

type actionStep struct {
	Shell string            `json:"shell"`
	Env   map[string]string `json:"env"`
	Run   string            `json:"run"`
	Uses  string            `json:"uses"`
	With  map[string]any    `json:"with"`
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func readAction(t *testing.T) (a actionFile) {
	t.Helper()
	readYAML(t, "../../action.yml", &a)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Fatalf("%+v", a.Runs)
	}
	return a
}

// runner executes an action in a folder, as a runner of GitHub does.
type runner struct {
	dir, temp, summary string
	path               string // of programs
}

func newRunner(t *testing.T) runner {
	t.Helper()
	dir := t.TempDir()
	return runner{dir: dir, temp: t.TempDir(), summary: filepath.Join(dir, "summary.md"), path: os.Getenv("PATH")}
}

// run executes the steps until one fails.
func (r runner) run(t *testing.T, a actionFile, inputs map[string]string) (code int, output string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for name, input := range a.Inputs {
		value, ok := inputs[name]
		if !ok {
			value = input.Default
		}
		values = append(values, "${{ inputs."+name+" }}", value)
	}
	for _, s := range a.Runs.Steps {
		script := filepath.Join(r.temp, "step.sh")
		if err := os.WriteFile(script, []byte(s.Run), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		cmd.Dir = r.dir
		cmd.Env = append(os.Environ(), "PATH="+r.path, "GITHUB_ACTION_PATH="+root, "RUNNER_TEMP="+r.temp, "GITHUB_STEP_SUMMARY="+r.summary)
		for name, value := range s.Env {
			cmd.Env = append(cmd.Env, name+"="+strings.NewReplacer(values...).Replace(value))
		}
		out, err := cmd.CombinedOutput()
		output += string(out)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode(), output
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return 0, output
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// docker stands for an engine: a container is a process of this machine, and its id is the process's.
const docker = `#!/usr/bin/env bash
set -e
case $1 in
run)
  [ "$2 $3 $5 $6 $7 $9" = "-d --user --network host -v --entrypoint" ] || { echo "docker $*" >&2; exit 125; }
  program=${10}
  shift 11
  "$program" "$@" >"$RUNNER_TEMP/log" 2>&1 &
  echo $!
  ;;
logs) exec tail -n +1 -f --pid "$3" "$RUNNER_TEMP/log" ;;
rm) kill "$3"; echo >"$RUNNER_TEMP/removed" ;;
esac
`

// TestAction executes the steps of action.yml with a right plugin and with wrong ones.
func TestAction(t *testing.T) {
	a, bin := readAction(t), t.TempDir()
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "../../cmd/fake-kms-plugin").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	engine := filepath.Join(bin, "docker")
	if err := os.WriteFile(engine, []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	program := bin + "/fake-kms-plugin"
	serve := program + " serve --listen {endpoint} --log-format text"
	for name, c := range map[string]struct {
		inputs map[string]string
		code   int
		want   string // in the summary
	}{
		"command":        {map[string]string{"command": serve, "profile": "core"}, 0, ": conformant (plugin)"},
		"manifest":       {map[string]string{"manifest": "plugin.yaml"}, 0, "# mine v1: conformant (plugin)"},
		"image":          {map[string]string{"command": serve, "image": "mine:dev", "profile": "core", "manifest": "plugin.yaml"}, 0, "# mine v1: conformant (plugin)"},
		"wrong plugin":   {map[string]string{"command": serve + " --fault key-id-flip-flop", "profile": "core"}, 1, ": NOT conformant (plugin)"},
		"wrong image":    {map[string]string{"command": program + " faults", "image": "mine:dev"}, 1, ""},
		"image, no path": {map[string]string{"command": "mine", "image": "mine:dev"}, 2, ""},
		"nothing":        {nil, 2, "No verdict"},
		"no profile":     {map[string]string{"command": serve, "profile": "cores"}, 2, "No verdict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t)
			r.path = bin + ":" + r.path
			manifest := fmt.Sprintf("apiVersion: kmsharness.io/v1alpha1\nkind: SystemUnderTest\nplugin: {name: mine, version: v1, profile: core, command: '%s'}\n", serve)
			if err := os.WriteFile(filepath.Join(r.dir, "plugin.yaml"), []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			code, output := r.run(t, a, c.inputs)
			if started := strings.HasPrefix(name, "image") && c.code == 0; started != exists(r.temp+"/removed") {
				t.Error("the container was not removed")
			}
			summary, _ := os.ReadFile(r.summary) // absent if the plugin was not started
			if code != c.code || !strings.Contains(string(summary), c.want) {
				t.Errorf("exit %d, want %d with %q in the summary\n%s\n%s", code, c.code, c.want, summary, output)
			}
			for _, file := range []string{"report.yaml", "report.html", "junit.xml"} {
				if has := exists(filepath.Join(r.dir, "kms-conformance", file)); has != strings.Contains(c.want, "onformant") {
					t.Errorf("%s: %v", file, has)
				}
			}
		})
	}
}

// TestActionIsSafe: no input is executed, and a step without a shell is none.
func TestActionIsSafe(t *testing.T) {
	for _, s := range readAction(t).Runs.Steps {
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			t.Errorf("shell %q, or an expression in %q: pass it in env", s.Shell, s.Run)
		}
	}
}

// TestExampleWorkflows: they name what the action has, and others' actions by commit.
func TestExampleWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../docs/workflows/*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	inputs, own := readAction(t).Inputs, 0
	for _, file := range files {
		var workflow struct {
			Jobs map[string]struct {
				Steps []actionStep `json:"steps"`
			} `json:"jobs"`
		}
		readYAML(t, file, &workflow)
		for _, s := range workflow.Jobs["conformance"].Steps {
			if s.Uses != "kmsharness/kmsharness@main" {
				if s.Run == "" && !action.MatchString(s.Uses) {
					t.Errorf("%s: %s: expected a commit", file, s.Uses)
				}
				continue
			}
			own++
			for name := range s.With {
				if _, ok := inputs[name]; !ok {
					t.Errorf("%s: the action has no input %s", file, name)
				}
			}
		}
	}
	if own != 1 {
		t.Errorf("%d workflows use the action", own)
	}
}
