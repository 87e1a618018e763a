package tail_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/record/tail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink collects lines.
type sink struct{ lines []string }

func (s *sink) line(b []byte) error {
	s.lines = append(s.lines, string(b))
	return nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPollHandsOverEveryCompleteLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for name, step := range map[string]func(){
		"append":   func() { write(t, path, "b\nc\n") },
		"halves":   func() { write(t, path, "b"); write(t, path, "\nc\n") },
		"empty":    func() { write(t, path, "\nb\n\nc\n") },
		"rotated":  func() { write(t, path, "b\n"); must(t, os.Rename(path, path+".1")); write(t, path, "c\n") },
		"replaced": func() { write(t, path, "b\n"); must(t, os.Remove(path)); write(t, path, "c\n") },
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(path)
			var s sink
			f := tail.NewFollower(path, s.line)
			defer f.Close()
			must(t, f.Poll()) // not there yet
			write(t, path, "a\n")
			must(t, f.Poll())
			step()
			must(t, f.Poll())
			if want := []string{"a", "b", "c"}; !slices.Equal(s.lines, want) {
				t.Fatalf("lines %q, want %q", s.lines, want)
			}
			if p := f.Problems(); len(p) != 0 {
				t.Fatalf("problems: %v", p)
			}
		})
	}
}

func TestPollReadsATruncatedFileFromItsBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var s sink
	f := tail.NewFollower(path, s.line)
	defer f.Close()
	write(t, path, "first\nsecond\n")
	must(t, f.Poll())
	must(t, os.WriteFile(path, []byte("new\n"), 0o600))
	must(t, f.Poll())
	if want := []string{"first", "second", "new"}; !slices.Equal(s.lines, want) {
		t.Fatalf("lines %q, want %q", s.lines, want)
	}
}

func TestProblemsAreKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for name, test := range map[string]struct{ text, want string }{
		"torn":     {"a\nb", "has no end"},
		"too long": {strings.Repeat("x", tail.MaxLineBytes+1) + "\n", "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(path, []byte(test.text), 0o600))
			var s sink
			f := tail.NewFollower(path, s.line)
			defer f.Close()
			must(t, f.Poll())
			if p := f.Problems(); len(p) != 1 || !strings.Contains(p[0].Error(), test.want) {
				t.Fatalf("problems %v, want one with %q", p, test.want)
			}
		})
	}
}

func TestSetSkipsWhatWasThereAndDrainsAtClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "old\n")
	set := tail.NewSet()
	var s sink
	must(t, set.Add(path, tail.FromEnd, s.line))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	ticks := make(chan time.Time)
	go func() { defer close(done); set.Run(ctx, ticks) }()
	write(t, path, "new\n")
	ticks <- time.Time{}
	cancel()
	<-done
	write(t, path, "last\n")
	must(t, set.Close())
	if want := []string{"new", "last"}; !slices.Equal(s.lines, want) {
		t.Fatalf("lines %q, want %q", s.lines, want)
	}
}

// A process that goes on writes a line in parts: neither the rest of one that began before is a line, nor is the beginning of one at the end a
// problem, unless it stays one.
func TestSetAndAWriterThatGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "old, beg")
	set := tail.NewSet()
	var s sink
	must(t, set.Add(path, tail.FromEnd, s.line))
	write(t, path, "un before\nnew\nwritten in ")
	must(t, set.Poll())
	done := make(chan struct{})
	written := time.AfterFunc(50*time.Millisecond, func() {
		defer close(done)
		write(t, path, "parts\n")
	})
	defer written.Stop()
	must(t, set.Close())
	<-done
	if want := []string{"new", "written in parts"}; !slices.Equal(s.lines, want) {
		t.Fatalf("lines %q, want %q", s.lines, want)
	}
	torn := tail.NewSet()
	must(t, torn.Add(path, tail.FromEnd, s.line))
	write(t, path, "tor")
	if err := torn.Close(); err == nil || !strings.Contains(err.Error(), "the last line (3 bytes) has no end") {
		t.Errorf("a torn line: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
