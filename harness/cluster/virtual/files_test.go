package virtual

import (
	"io"
	"path/filepath"
	"testing"
)

// A file that is appended to here has something new once for each time that something was written, in whatever way; one of others always.
func TestChangedFiles(t *testing.T) {
	f := files{}
	path := filepath.Join(t.TempDir(), "log")
	log, err := f.Append(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, write := range []func() error{
		func() error { return nil }, // it may have been there
		func() error { _, err := log.Write([]byte("a\n")); return err },
		func() error { _, err := io.WriteString(log, "b\n"); return err },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if first, second := f.Changed(path), f.Changed(path); !first || second {
			t.Error("a file that was written to has something new once")
		}
	}
	for range 2 {
		if !f.Changed(path + "2") {
			t.Error("of a file that others write nothing is known")
		}
	}
}
