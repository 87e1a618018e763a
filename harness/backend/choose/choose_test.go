package choose

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/undertest"
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
		"in /var/run/kmsplugin": under(undertest.System{Reporter: undertest.Reporter{MountSockets: true}}),
		"reporter.image only":   under(undertest.System{Reporter: undertest.Reporter{Args: "--x"}}),
		"aggregator.command: ":  under(undertest.System{Aggregator: undertest.Aggregator{Command: "a {b}"}}),
	} {
		if _, err := New("kind", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	for command, want := range map[string]string{"/bin/kms-health-reporter": "compiled into it", "kms-health-reporter --kms-sockets={sockets}": ""} {
		if _, err := New("sim", under(undertest.System{Operator: undertest.Operator{MountSockets: true}})); err == nil || !strings.Contains(err.Error(), "mountSockets") {
			t.Errorf("sim with mounts: %v", err)
		}
		_, err := New("sim", under(undertest.System{Reporter: undertest.Reporter{Command: command}}))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("sim with %s: %v", command, err)
		}
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
		{"local", "", "(!slow || local) && (form || !/@healthreports/)"}, {"sim", "", ""}, {"kind", "", "only-kind && !slow || kind"}, {"kind", "all", ""}, {"local", "all", ""}, {"kind", "area:sno", "area:sno"},
	} {
		filter, notice := Part(c.name, c.labels)
		if filter != c.filter || strings.Contains(notice, "LABELS=all") != (c.labels != filter && filter != "") {
			t.Errorf("%s %q: %q, %q", c.name, c.labels, filter, notice)
		}
	}
}
