package supervisor_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/kmsharness/kmsharness/harness/supervisor"
)

// The words of a command file are those of the moment of a start.
func TestCommandFileIsReadAtEveryStart(t *testing.T) {
	dir := newFolder(t)
	waiting := exe(t, dir, "--command", dir+"/command")
	waiting.state(supervisor.Stopped) // there is none so far
	waiting.signal(syscall.SIGTERM)
	waiting.exit()
	write := func(text string) {
		if err := os.WriteFile(dir+"/command", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`["/bin/sh", "-c", "echo first $WHO; exec sleep 100"]`)
	c := exe(t, dir, "--env", "WHO=me", "--command", dir+"/command")
	c.said("first me", 1)
	write(`["/bin/sh", "-c", "echo second; exec sleep 100"]`)
	must(t)(c.client.Kill(t.Context()))
	must(t)(c.client.Start(t.Context()))
	c.said("second", 1)
	must(t)(c.client.Kill(t.Context()))
	write(`{}`)
	if _, err := c.client.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "expected a JSON list of words") {
		t.Errorf("start with a broken command file: %v", err)
	}
}

func TestParseCommand(t *testing.T) {
	for text, want := range map[string]string{
		`["/p", "--x"]`: "", `[]`: "expected a program", `[""]`: "expected a program", `["p", 1]`: "a JSON list of words", ``: "a JSON list of words",
	} {
		argv, err := supervisor.ParseCommand([]byte(text))
		if want == "" && (err != nil || len(argv) != 2) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v, want %q", text, argv, err, want)
		}
	}
}
