package live

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The program of a template is one that can be started, or the error names the flag, the program and where it was looked for.
func TestCheckPrograms(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for name, mode := range map[string]os.FileMode{"mine": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"":                             "",
		"mine --x":                     "",
		dir + "/mine {node}":           "",
		"'" + dir + "/mine' {sockets}": "",
		"{node}-reporter":              "", // known later
		"kms-health-reporter --x":      "", // the test runs in the module, so that it can be built
		"my-reporter --x":              `program "my-reporter": no executable file of this name is on PATH (` + dir + ")",
		"text":                         `program "text": no executable file`,
		dir + "/none --x":              "there is no file " + dir + "/none",
		dir + "/text":                  dir + "/text is not executable",
		dir:                            dir + " is a directory",
		"./none":                       "/harness/backend/live/none",
	} {
		for flag, s := range map[string]SystemUnderTest{"--reporter-command": {ReporterCommand: command}, "--aggregator-command": {AggregatorCommand: command}} {
			err := s.CheckPrograms(Findable)
			if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), flag+": ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s %q: %v, want %q", flag, command, err, want)
			}
		}
	}
}

// A program of this project is one that is built already, or can be.
func TestFindable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvPrograms, dir)
	if err := Findable("kms-health-reporter", ""); err == nil || !strings.Contains(err.Error(), EnvPrograms+"="+dir+": there is no file") {
		t.Errorf("in an empty %s: %v", EnvPrograms, err)
	}
	t.Setenv(EnvPrograms, "")
	t.Chdir(dir)
	if err := Findable("kms-health-reporter", ""); err == nil || !strings.Contains(err.Error(), "not in the module") {
		t.Errorf("outside of the module: %v", err)
	}
	if err := os.WriteFile("go.mod", []byte("module example.org/other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Findable("kms-health-reporter", ""); err == nil || !strings.Contains(err.Error(), "not in the module") {
		t.Errorf("in another module: %v", err)
	}
}

func TestOwn(t *testing.T) {
	if got := (SystemUnderTest{ReporterCommand: "/bin/mine"}).Own(); !slices.Equal(got, []string{PluginProgram, "kms-health-aggregator", "encryption-operator"}) {
		t.Error(got)
	}
}

func TestNameOf(t *testing.T) {
	for text, want := range map[string]string{
		"/bin/mine --x": "mine", "env A=1 B='2 3' /bin/mine --x=y": "mine", "/usr/bin/env -i A=1 mine": "env", "env A=1": "env", "": "",
	} {
		if got := nameOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
