package supervisor_test

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/supervisor"
)

func TestParse(t *testing.T) {
	good := []string{"--control", "unix:///run/h.sock", "--journal", "j", "--log", "l"}
	o, err := supervisor.Parse(append(slices.Clone(good), "--", "prog", "--flag", "--", "x"), io.Discard)
	if err != nil || o.Control.String() != good[1] || o.Journal != "j" || o.Log != "l" || strings.Join(o.Argv, " ") != "prog --flag -- x" {
		t.Errorf("%+v, %v", o, err)
	}
	for text, args := range map[string][]string{
		"--control":                nil,
		"unix:///PATH":             {"--control", "tcp://127.0.0.1:1"},
		"--journal is missing":     good[:2],
		"--log is missing":         good[:4],
		"the program is missing":   good,
		"expected one of them":     append(slices.Clone(good), "--command", "f", "--", "p"),
		"not defined: -holdd":      {"--holdd"},
		"two numbers that are not": append(slices.Clone(good), "--user", "0:7", "--", "p"),
		"which a folder protects":  {"--control", "unix:///@h", "--journal", "j", "--log", "l", "--user", "7:7", "--", "p"},
		"expected UID:GID":         append(slices.Clone(good), "--user", "nobody", "--", "p"),
	} {
		if _, err := supervisor.Parse(args, io.Discard); err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", args, err, text)
		}
	}
	var help strings.Builder
	if _, err := supervisor.Parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-command file") {
		t.Errorf("help: %v, %q", err, help.String())
	}
}
