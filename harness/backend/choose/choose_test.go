package choose

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/local"
)

func TestName(t *testing.T) {
	for name, want := range map[string]string{"auto": "local", "local": "local", "kind": "kind", "sim": "sim"} {
		if got, why, err := Name(name); got != want || why == "" || err != nil {
			t.Errorf("%s: %s (%s), %v", name, got, why, err)
		}
	}
	for name, want := range map[string]string{"": "expected auto, sim, local or kind"} {
		if _, _, err := Name(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestNewFindsMistakes(t *testing.T) {
	for want, o := range map[string]Options{
		"in /var/run/kmsplugin": {Options: local.Options{ReporterMountSockets: true}},
		"expected both":         {ReporterArgs: "--x"},
		"aggregator command":    {Options: local.Options{SystemUnderTest: live.SystemUnderTest{AggregatorCommand: "a {b}"}}},
	} {
		if _, err := New("kind", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := New("sim", Options{Options: local.Options{SystemUnderTest: live.SystemUnderTest{ReporterCommand: "r"}}}); err == nil || !strings.Contains(err.Error(), "compiled into it") {
		t.Errorf("sim with a reporter command: %v", err)
	}
	for _, name := range []string{"local", "kind", "sim"} {
		b, err := New(name, Options{})
		if err != nil || b.Name() != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPart: real control planes have defaults of their own, which is said, and all is all everywhere.
func TestPart(t *testing.T) {
	for _, c := range []struct{ name, labels, filter string }{
		{"local", "", "!slow && (form || !/@healthreports/)"}, {"sim", "", ""}, {"kind", "", "only-kind && !slow"}, {"kind", "all", ""}, {"local", "all", ""}, {"kind", "area:sno", "area:sno"},
	} {
		filter, notice := Part(c.name, c.labels)
		if filter != c.filter || strings.Contains(notice, "LABELS=all") != (c.labels != filter && filter != "") {
			t.Errorf("%s %q: %q, %q", c.name, c.labels, filter, notice)
		}
	}
}
