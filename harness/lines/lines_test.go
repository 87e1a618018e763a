package lines

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress")
	add := func(line string) {
		if err := Append(path, line); err != nil {
			t.Fatal(err)
		}
	}
	ticks, out := make(chan time.Time), &bytes.Buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); Copy(ctx, out, path, ticks) }()
	ticks <- time.Time{} // there is no file
	add("one")
	ticks <- time.Time{}
	add("two\nlines")
	cancel()
	<-done
	if got := out.String(); got != "one\ntwo lines\n" {
		t.Errorf("%q", got)
	}
}

func TestALineThatHasNotEnded(t *testing.T) {
	path, out := filepath.Join(t.TempDir(), "progress"), &bytes.Buffer{}
	r := reader{path: path}
	defer r.close()
	for _, text := range []string{"ha", "half", "half a line\nand"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r.copy(out)
	}
	if got := out.String(); got != "half a line\n" {
		t.Errorf("%q: expected whole lines only", got)
	}
}

func TestAppendToNowhere(t *testing.T) {
	if err := Append(filepath.Join(t.TempDir(), "no", "file"), "x"); err == nil {
		t.Error("expected an error")
	}
}
