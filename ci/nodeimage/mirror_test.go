package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestDebianMirror(t *testing.T) {
	const lines, stanzas = "sources.list", "sources.list.d/debian.sources"
	for name, c := range map[string]struct {
		named string
		files map[string]string
		want  string // empty: none
	}{
		"nothing": {},
		"named":   {named: "http://named/debian", files: map[string]string{lines: "deb http://a/debian bookworm main"}, want: "http://named/debian"},
		"lines": {files: map[string]string{lines: "# deb http://commented/debian bookworm main\ndeb-src http://src/debian bookworm main\n" +
			"deb http://security/debian-security bookworm-security main\ndeb   http://a/debian/\tbookworm main contrib # ours\n"}, want: "http://a/debian/"},
		"lines with options": {files: map[string]string{"sources.list.d/x.list": "deb [ arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg ] http://a/proxy/bookworm bookworm main"},
			want: "http://a/proxy/bookworm"},
		"lines of another release":       {files: map[string]string{lines: "deb [arch=amd64] https://a/debian trixie main"}, want: "https://a/debian"},
		"lines of a snapshot":            {files: map[string]string{lines: "deb http://a/archive/debian/20250520T000000Z bookworm main"}, want: "http://a/archive/debian/20250520T000000Z"},
		"lines, security only":           {files: map[string]string{lines: "deb http://a/debian bookworm-security main\ndeb http://a/debian-security stable main"}},
		"lines, Ubuntu":                  {files: map[string]string{lines: "deb http://a/ubuntu jammy main universe"}},
		"lines, others' packages":        {files: map[string]string{lines: "deb [signed-by=/k/h.gpg] https://a bookworm main\ndeb http://a/linux/chrome/deb/ stable main\ndeb http://a/linux/debian bookworm stable\n"}},
		"lines, too short, not a URI":    {files: map[string]string{lines: "deb http://a/debian bookworm\ndeb [http://a/debian bookworm main\ndeb cdrom:[Debian]/debian bookworm main\ndeb"}},
		"a file that apt does not read":  {files: map[string]string{"sources.list.d/x.list.disabled": "deb http://a/debian bookworm main"}},
		"the file of all comes first":    {files: map[string]string{lines: "deb http://a/debian bookworm main", stanzas: "Types: deb\nURIs: http://b/debian\nSuites: bookworm\nComponents: main"}, want: "http://a/debian"},
		"stanzas":                        {files: map[string]string{stanzas: "Types: deb deb-src\n# a comment\nURIs: http://a/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n"}, want: "http://a/debian"},
		"stanzas, security first":        {files: map[string]string{stanzas: "Types: deb\nURIs: http://s/debian-security\nSuites: bookworm-security\nComponents: main\n\nTypes: deb\nURIs: http://a/debian\nSuites: bookworm\nComponents: main\n"}, want: "http://a/debian"},
		"stanzas, security only":         {files: map[string]string{stanzas: "Types: deb\nURIs: http://a/debian\nSuites: bookworm-security\nComponents: main\n"}},
		"stanzas, disabled":              {files: map[string]string{stanzas: "Enabled: no\nTypes: deb\nURIs: http://a/debian\nSuites: bookworm\nComponents: main\n"}},
		"stanzas, sources only":          {files: map[string]string{stanzas: "Types: deb-src\nURIs: http://a/debian\nSuites: bookworm\nComponents: main\n"}},
		"stanzas, lines that go on":      {files: map[string]string{stanzas: "types: deb\nuris: mirror+file:/m\n http://a/x/debian\nSUITES:\n sid\n\t bookworm\nComponents: contrib\n main\nSigned-By:\n -----BEGIN\n .\n x\n"}, want: "http://a/x/debian"},
		"stanzas, a keyring of Debian's": {files: map[string]string{stanzas: "Types: deb\nURIs: http://a/mirror\nSuites: bookworm\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"}, want: "http://a/mirror"},
	} {
		etc := fstest.MapFS{}
		for file, text := range c.files {
			etc[file] = &fstest.MapFile{Data: []byte(text)}
		}
		got, err := debianMirror(c.named, etc)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		if err != nil && (!strings.Contains(err.Error(), "set KMSHARNESS_DEBIAN_MIRROR") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
