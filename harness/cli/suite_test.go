package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Whole lines only are shown, also those that come before the end without a tick.
func TestCopyLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ticks, out := make(chan time.Time), &bytes.Buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); copyLines(ctx, out, path, func(line string) string { return line }, ticks) }()
	ticks <- time.Time{} // there is no file
	write("one\nha")
	ticks <- time.Time{}
	write("one\nhalf\nan end")
	cancel()
	<-done
	if got := out.String(); got != "one\nhalf\n" {
		t.Errorf("%q", got)
	}
}
