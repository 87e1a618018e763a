package command

import (
	"slices"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	parsed, err := Parse(`my-plugin --listen {socket} '--name=node {node}' "" x{node}y`, "socket", "node")
	if err != nil {
		t.Fatal(err)
	}
	program, args := parsed.Fill(map[string]string{"socket": "/a b.sock", "node": "cp-1"})
	if want := []string{"--listen", "/a b.sock", "--name=node cp-1", "", "xcp-1y"}; program != "my-plugin" || !slices.Equal(args, want) {
		t.Errorf("%q %q, want %q", program, args, want)
	}
	if !parsed.Has("socket") || parsed.Has("state") {
		t.Error("Has reports other placeholders than those of the text")
	}
}

func TestParseNamesTheMistake(t *testing.T) {
	for text, want := range map[string]string{
		"":               "expected a program",
		"a 'b":           "not closed",
		"a --x={socket}": "{socket} is unknown: expected one of {node}",
	} {
		if _, err := Parse(text, "node"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
