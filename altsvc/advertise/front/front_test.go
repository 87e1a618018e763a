package front

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/entry"
)

func TestParse(t *testing.T) {
	good := []string{"--listen", ":6444", "--upstream", "127.0.0.1:6443"}
	o, err := Parse(good, io.Discard)
	if want := (Options{Listen: ":6444", Upstream: "127.0.0.1:6443", Dir: "/etc/kubernetes"}); err != nil || o != want {
		t.Errorf("%+v, %v, expected %+v", o, err, want)
	}
	for text, args := range map[string][]string{
		"--listen is missing":   {},
		"--upstream is missing": good[:2],
		"expected HOST:PORT":    {"--listen", "6444", "--upstream", "127.0.0.1:6443"},
		`port "0"`:              {"--listen", ":0", "--upstream", "127.0.0.1:6443"},
		"unexpected argument":   append(good, "x"),
		"-fault":                append(good, "--fault", "mute"),
	} {
		if _, err := Parse(args, io.Discard); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, expected %q", args, err, text)
		}
	}
	var help bytes.Buffer
	if _, err := Parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "--kubernetes") {
		t.Errorf("%v: %s", err, &help)
	}
}

// A node that kubeadm has not set up is a failure at once, with the file that is missing.
func TestNoNodeOfKubeadm(t *testing.T) {
	var stderr bytes.Buffer
	code := Main(t.Context(), []string{"--listen", "127.0.0.1:6444", "--upstream", "127.0.0.1:1", "--kubernetes", t.TempDir()}, io.Discard, &stderr)
	if code != entry.ExitFailed || !strings.Contains(stderr.String(), "admin.conf") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	if code := Main(t.Context(), []string{"--listen", "nowhere"}, io.Discard, io.Discard); code != entry.ExitUsage {
		t.Errorf("exit code %d, expected %d", code, entry.ExitUsage)
	}
}
