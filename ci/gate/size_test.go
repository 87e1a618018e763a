package gate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that has more lines than the budget allows fails, as does one that is not in it. Tests do not count.
func TestSizeIsBounded(t *testing.T) {
	script, err := filepath.Abs("../size.sh")
	if err != nil {
		t.Fatal(err)
	}
	for budget, want := range map[string]string{
		"a: 2\nb: 1\n": "",
		"a: 3\nb: 1\n": "",
		"a: 1\nb: 1\n": "a 2 lines of Go without tests, 1 allowed: TOO MANY",
		"a: 2\n":       "b 1 lines of Go without tests, 0 allowed: TOO MANY",
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"a/x.go": "1\n2\n", "a/x_test.go": "1\n2\n3\n", "b/c/y.go": "1\n", "ci/size.yaml": "# a: comment\n" + budget} {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run := func(name string, args ...string) (string, error) {
			c := exec.Command(name, args...)
			c.Dir = dir
			out, err := c.CombinedOutput()
			return strings.Join(strings.Fields(string(out)), " "), err
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
			if out, err := run("git", args...); err != nil {
				t.Fatalf("git %s: %v: %s", args, err, out)
			}
		}
		if out, err := run(script); (err != nil) != (want != "") || !strings.Contains(out, want) {
			t.Errorf("%q: %v\n%s\nexpected %q", budget, err, out, want)
		}
	}
}
