package main

import (
	"strings"
	"testing"
)

func TestDebianMirror(t *testing.T) {
	const unread = " $(ORIGIN)\n" // of a repository that apt has not read yet
	for name, c := range map[string]struct{ named, targets, want string }{
		"nothing":           {},
		"named":             {named: "http://named/debian", targets: "http://a/debian/ bookworm main" + unread, want: "http://named/debian"},
		"the first":         {targets: "http://s/debian-security/ bookworm-security main Debian\nhttp://a/debian/ bookworm-updates main Debian\nhttp://b/debian/ bookworm main Debian\nhttp://c/debian/ trixie main Debian\n", want: "http://b/debian/"},
		"not read yet":      {targets: "https://a/debian trixie main" + unread, want: "https://a/debian"},
		"a snapshot":        {targets: "http://a/archive/debian/20250520T000000Z bookworm main" + unread, want: "http://a/archive/debian/20250520T000000Z"},
		"another path":      {targets: "http://a/proxy/bookworm bookworm main Debian\n", want: "http://a/proxy/bookworm"},
		"security only":     {targets: "http://a/debian-security/ bookworm-security main Debian\nhttp://b/debian-security/ stable main" + unread},
		"Ubuntu":            {targets: "http://a/ubuntu/ jammy main Ubuntu\n"},
		"others' packages":  {targets: "https://a/ bookworm main HashiCorp\nhttp://a/linux/chrome/deb/ stable main Google\nhttp://a/linux/debian/ bookworm stable" + unread},
		"not a URI, no URI": {targets: "cdrom:[Debian]/debian bookworm main" + unread + "http://a/debian\nhttp://[/debian bookworm main Debian\n"},
	} {
		got, err := debianMirror(c.named, c.targets)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		if err != nil && (!strings.Contains(err.Error(), "set KMSHARNESS_DEBIAN_MIRROR") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
