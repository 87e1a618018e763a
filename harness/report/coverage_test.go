package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kmsharness/kmsharness/harness/result"
)

func TestCoverageNamesWhatJudgedNothing(t *testing.T) {
	out := t.TempDir()
	verdicts := map[string]string{
		"a": `{"invariants":[{"id":"QUIET","judged":3},{"id":"UID","judged":0}]}`,
		"b": `{"invariants":[{"id":"QUIET","judged":0},{"id":"UID","judged":0}]}`,
	}
	for name, text := range verdicts {
		if err := os.Mkdir(filepath.Join(out, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, name, result.VerdictJSON), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	line, err := Coverage(out)
	if want := "invariants: 1 of 2 were exercised; judged nothing: UID"; err != nil || line != want {
		t.Fatalf("%q (%v), expected %q", line, err, want)
	}
	if err := os.WriteFile(filepath.Join(out, "a", result.VerdictJSON), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Coverage(out); err == nil {
		t.Fatal("half a verdict was accepted")
	}
}
