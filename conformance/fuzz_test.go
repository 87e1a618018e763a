package conformance_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/kmsharness/kmsharness/conformance"
)

// FuzzReadReport: a report of somebody else's is refused or can be written again.
func FuzzReadReport(f *testing.F) {
	files, err := filepath.Glob("reports/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d published reports, %v", len(files), err)
	}
	for _, file := range files[:1] {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("apiVersion: " + conformance.APIVersion + "\nkind: " + conformance.Kind + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "report.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := conformance.ReadReport(file, func(string) []conformance.Check { return nil })
		if err != nil {
			return
		}
		if err := r.Write(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	})
}
