package alerts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func files(t *testing.T, pattern string, least int) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) < least {
		t.Fatalf("%s: %d files, %v, want at least %d", pattern, len(found), err, least)
	}
	return found
}

func TestRules(t *testing.T) {
	for _, path := range files(t, "tests/*.yaml", 2) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if err := run(path); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a Prometheus would have scraped in simulated runs of the failure stages fires as it should. The main module writes the file
// (scenarios/stages_test.go), and make alerts asks for it.
func TestFailureStages(t *testing.T) {
	path := os.Getenv("KMSHARNESS_STAGES")
	if path == "" {
		t.Skip("KMSHARNESS_STAGES names no file: run make alerts")
	}
	f, err := readFile(path)
	if err != nil || len(f.Tests) != 3 {
		t.Fatalf("%d stages, %v, want 3", len(f.Tests), err)
	}
	if err := run(path); err != nil {
		t.Error(err)
	}
	f.RuleFiles = []string{"testdata/bad/at-once.yaml"}
	if f.one(f.Tests[1]) == nil {
		t.Error("rules that do not wait for 5 minutes pass the medium stage")
	}
	f.RuleFiles = []string{"testdata/bad/too-late.yaml"}
	if f.one(f.Tests[2]) == nil {
		t.Error("rules that wait for 10 minutes pass the long stage")
	}
}

// Rules with a mistake fail the tests that good ones pass: each test of bad rules is one of the good rules' with other rule_files.
func TestBadRulesAreCaught(t *testing.T) {
	for _, rules := range files(t, "testdata/bad/*.yaml", 5) {
		t.Run(filepath.Base(rules), func(t *testing.T) {
			var all []string
			for _, path := range files(t, "tests/*.yaml", 2) {
				f, err := readFile(path)
				if err != nil {
					t.Fatal(err)
				}
				f.RuleFiles = []string{rules}
				for _, test := range f.Tests {
					if err := f.one(test); err != nil {
						all = append(all, err.Error())
					}
				}
			}
			if len(all) == 0 {
				t.Error("no test fails with it")
			}
			t.Log(strings.SplitN(strings.Join(all, "\n"), "\n", 2)[0])
		})
	}
}

func TestMistakesInTestFiles(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/mistakes/unknown-field.yaml":   "field input_serie not found",
		"testdata/mistakes/no-such-alert.yaml":   "there is no alert KMSPluginUnwell",
		"testdata/mistakes/no-rules.yaml":        "0 rule_files",
		"testdata/mistakes/expects-nothing.yaml": "expects nothing",
	} {
		if err := run(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
