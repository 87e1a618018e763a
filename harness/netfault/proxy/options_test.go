package proxy_test

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/netfault/proxy"
)

func TestParse(t *testing.T) {
	good := []string{"--listen", ":0", "--upstream", "127.0.0.1:6443", "--ready", "r", "--fault", "slow", "--delay", "200ms"}
	o, err := proxy.Parse(good, io.Discard)
	want := proxy.Options{Listen: ":0", Upstream: "127.0.0.1:6443", Ready: "r", Fault: netfault.Fault{Mode: netfault.Slow, Delay: 200 * time.Millisecond}}
	if err != nil || o != want {
		t.Errorf("%+v, %v, expected %+v", o, err, want)
	}
	with := func(more ...string) []string { return append(slices.Clone(good), more...) }
	for text, args := range map[string][]string{
		"--listen is missing":                {},
		"--upstream is missing":              good[:2],
		"--ready is missing":                 {"--listen", ":0", "--upstream", "h:1", "--fault", "mute"},
		"--fault is missing":                 {"--listen", ":0", "--upstream", "h:1", "--ready", "r"},
		"the delay is 0s":                    good[:8],
		`"fast" is unknown: expected one of`: with("--fault", "fast"),
		`makes sense with "slow" and`:        with("--fault", "mute"),
		"a rate makes sense":                 with("--rate", "5"),
		"the loss is 100":                    {"--listen", ":0", "--upstream", "h:1", "--ready", "r", "--fault", "lossy", "--loss", "100"},
		"missing port in address":            with("--upstream", "127.0.0.1"),
		"--upstream: port \"https\"":         with("--upstream", "127.0.0.1:https"),
		"--listen: port \"65536\"":           with("--listen", ":65536"),
		`unexpected argument "now"`:          with("now"),
		"not defined: -faul":                 with("--faul", "x"),
		"invalid value \"1\" for flag":       with("--delay", "1"),
	} {
		if _, err := proxy.Parse(args, io.Discard); err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, expected one line with %q", args, err, text)
		}
	}
	var help strings.Builder
	if _, err := proxy.Parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-upstream address") {
		t.Errorf("help: %v, %q", err, help.String())
	}
}
