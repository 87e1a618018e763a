package result

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzReadResult: a result that somebody else saved is refused, or is a result.
func FuzzReadResult(f *testing.F) {
	f.Add([]byte(`{"scenario":"plugin-hangs","status":"passed"}`))
	f.Add([]byte(`{"status":"?","failures":[null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), ResultFile)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadResult(file)
		if err != nil {
			return
		}
		if err := r.Save(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	})
}
