package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/undertest"
)

// The program of a template is one that can be started, or the error names the field, the program and where it was looked for.
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
		"./none":                       "/harness/cluster/none",
	} {
		for field, s := range map[string]undertest.System{"reporter.command": {Reporter: undertest.Reporter{Command: command}}, "aggregator.command": {Aggregator: undertest.Aggregator{Command: command}}} {
			err := CheckPrograms(s, Findable)
			if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), field+": ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s %q: %v, want %q", field, command, err, want)
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
	if got := Own(undertest.System{Reporter: undertest.Reporter{Command: "/bin/mine"}}); !slices.Equal(got, []string{PluginProgram, "kms-health-aggregator", "encryption-operator"}) {
		t.Error(got)
	}
}
