package library

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// Each mutant changes a line that is there, and names a test that is there and says in its comment which statements it is for.
func TestMutantsAreUpToDate(t *testing.T) {
	names := map[string]bool{}
	for _, m := range All() {
		if _, err := m.mutated(root); err != nil {
			t.Error(err)
		}
		if names[m.Name] || m.Mistake == "" {
			t.Errorf("mutant %q: expected a name of its own and a mistake", m.Name)
		}
		names[m.Name] = true
		comment, ok := commentOf(t, filepath.Dir(m.File), m.Test)
		if !ok {
			t.Errorf("mutant %s: there is no %s in %s", m.Name, m.Test, filepath.Dir(m.File))
		}
		for _, id := range m.Statements {
			if !strings.Contains(comment, id) {
				t.Errorf("mutant %s: the comment of %s does not name %s: %s", m.Name, m.Test, id, comment)
			}
		}
	}
}

// commentOf is the comment of a test of a package.
func commentOf(t *testing.T, dir, test string) (string, bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`((?:// .*\n)*)func ` + test + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := function.FindSubmatch(text); found != nil {
			return string(found[1]), true
		}
	}
	return "", false
}

// A mutant that its test catches is killed; one that changes nothing survives, and so does one that does not compile: nothing was shown.
func TestTry(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a package three times")
	}
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	caught := Mutant{Name: "caught", File: client + "table.go", Old: "	if text == t.field {\n", New: "	if t.field != \"\" {\n", Test: "TestMembersChange"}
	harmless, broken := caught, caught
	harmless.New, broken.New = "	if t.field == text {\n", "	if nothing {\n"
	for want, m := range map[string]Mutant{"": caught, "expected TestMembersChange of harness/altsvc to fail": harmless, "undefined: nothing": broken} {
		if got := m.Try(t.Context(), absolute, t.TempDir()).Survived; got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("survived: %q, want %q", got, want)
		}
	}
}
