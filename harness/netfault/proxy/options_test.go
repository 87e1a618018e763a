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
	good := []string{"--upstream", "127.0.0.1:6443", "--ready", "r", "--fault", `{"mode":"slow","delay":200000000}`}
	o, err := proxy.Parse(good, io.Discard)
	want := proxy.Options{Upstream: "127.0.0.1:6443", Ready: "r", Fault: netfault.Fault{Mode: netfault.Slow, Delay: 200 * time.Millisecond}}
	if err != nil || o != want {
		t.Errorf("%+v, %v, expected %+v", o, err, want)
	}
	with := func(more ...string) []string { return append(slices.Clone(good), more...) }
	for text, args := range map[string][]string{
		"--upstream is missing":              {},
		"--ready is missing":                 {"--upstream", "h:1", "--fault", `{"mode":"mute"}`},
		"--fault is missing":                 good[:4],
		"the delay is 0s":                    append(slices.Clone(good[:4]), "--fault", `{"mode":"slow"}`),
		`"fast" is unknown: expected one of`: with("--fault", `{"mode":"fast"}`),
		"invalid character":                  with("--fault", "mute"),
		`unexpected argument "now"`:          with("now"),
		"not defined: -faul":                 with("--faul", "x"),
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
