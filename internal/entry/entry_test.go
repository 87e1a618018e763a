package entry_test

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/entry"
)

func TestParse(t *testing.T) {
	f := flag.NewFlagSet("p", flag.ContinueOnError)
	n := f.Int("n", 1, "a `number`")
	var out bytes.Buffer
	if err := entry.Parse(f, "usage: p\n", []string{"--n", "2"}, &out); err != nil || *n != 2 || out.Len() > 0 {
		t.Errorf("%v, n %d, printed %q", err, *n, &out)
	}
	if err := entry.Parse(f, "usage: p\n", []string{"--other"}, &out); err == nil || errors.Is(err, flag.ErrHelp) || out.Len() > 0 {
		t.Errorf("%v, printed %q, want an error and nothing printed", err, &out)
	}
	if err := entry.Parse(f, "usage: p\n", []string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(out.String(), "usage: p\n") || !strings.Contains(out.String(), "-n number") {
		t.Errorf("%v, printed %q", err, &out)
	}
}

func TestExit(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		says string
	}{{nil, 0, ""}, {flag.ErrHelp, 0, ""}, {errors.New("no"), entry.ExitUsage, "p: no\n"}} {
		var stderr bytes.Buffer
		if code := entry.Exit(&stderr, "p", entry.ExitUsage, c.err); code != c.code || stderr.String() != c.says {
			t.Errorf("%v: exit code %d, printed %q", c.err, code, &stderr)
		}
	}
}
