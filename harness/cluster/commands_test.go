package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/command"
)

func TestTemplate(t *testing.T) {
	parsed, err := command.Parse(`my-reporter --kms-sockets {sockets} '--name=node {node}' "" x{node}y`, undertest.Placeholders()...)
	if err != nil {
		t.Fatal(err)
	}
	program, args := parsed.Fill(map[string]string{"sockets": "unix:///a b.sock", "node": "cp-1"})
	want := []string{"--kms-sockets", "unix:///a b.sock", "--name=node cp-1", "", "xcp-1y"}
	if program != "my-reporter" || !slices.Equal(args, want) {
		t.Fatalf("%q %q, want %q", program, args, want)
	}
}

func TestTemplateNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":               "expected a program",
		"a 'b":           "not closed",
		"a --x={socket}": "{socket} is unknown: expected one of {sockets}",
	} {
		if _, err := command.Parse(text, undertest.Placeholders()...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestDefaultCommandsAreTemplates(t *testing.T) {
	for _, text := range []string{DefaultReporter, StreamingReporter, DefaultAggregator, QuickLease, ProfiledAggregator, StreamingAggregator, DefaultOperator, MigratingOperator} {
		if _, err := command.Parse(text, undertest.Placeholders()...); err != nil {
			t.Error(err)
		}
	}
}
