package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
)

// envMirror names a Debian mirror.
const envMirror = "KMSHARNESS_DEBIAN_MIRROR"

// suites of Debian's archive. A mirror that has one of them has the one that the image is made of.
var suites = []string{"bookworm", "trixie", "forky", "bullseye", "sid", "oldstable", "stable", "testing", "unstable"}

// source is one repository that apt is configured with.
type source struct {
	uris, suites, components []string
	signedBy                 string
}

// debianMirror is where Debian's packages come from: the named mirror, or the first that apt is configured with. etc is /etc/apt.
func debianMirror(named string, etc fs.FS) (string, error) {
	if named != "" {
		return named, nil
	}
	files, err := fs.Glob(etc, "sources.list.d/*")
	if err != nil {
		return "", err
	}
	for _, file := range append([]string{"sources.list"}, files...) {
		text, err := fs.ReadFile(etc, file)
		if err != nil {
			continue // not there, or not for this user
		}
		var sources []source
		switch path.Ext(file) {
		case ".list":
			sources = lineSources(string(text))
		case ".sources":
			sources = stanzaSources(string(text))
		}
		for _, s := range sources {
			if i := slices.IndexFunc(s.uris, s.debian); i >= 0 {
				return s.uris[i], nil
			}
		}
	}
	return "", fmt.Errorf("apt has no Debian mirror in /etc/apt/sources.list{,.d}: set %s to one, for example http://HOST/debian", envMirror)
}

// debian reports whether a URI is that of Debian's main archive, which security suites and packages of others are not.
func (s source) debian(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "file" {
		return false
	}
	known := slices.ContainsFunc(s.suites, func(suite string) bool { return slices.Contains(suites, suite) })
	official := slices.Contains(strings.Split(u.Path, "/"), "debian") || strings.Contains(s.signedBy, "debian-archive-keyring")
	return known && official && slices.Contains(s.components, "main")
}

// lineSources reads the one-line format: deb [options] URI SUITE COMPONENT…
func lineSources(text string) (all []source) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		line, isDeb := strings.CutPrefix(strings.Join(strings.Fields(line), " "), "deb ")
		if !isDeb {
			continue
		}
		var s source
		if options, rest, found := strings.Cut(line, "]"); found && strings.HasPrefix(line, "[") {
			s.signedBy, line = options, rest
		}
		if words := strings.Fields(line); len(words) > 2 {
			s.uris, s.suites, s.components = words[:1], words[1:2], words[2:]
			all = append(all, s)
		}
	}
	return all
}

// stanzaSources reads the deb822 format: stanzas of fields, which may go on in indented lines.
func stanzaSources(text string) (all []source) {
	fields, name := map[string]string{}, ""
	end := func() {
		if slices.Contains(strings.Fields(fields["types"]), "deb") && !slices.Contains([]string{"no", "false", "0"}, strings.TrimSpace(fields["enabled"])) {
			all = append(all, source{strings.Fields(fields["uris"]), strings.Fields(fields["suites"]), strings.Fields(fields["components"]), fields["signed-by"]})
		}
		fields, name = map[string]string{}, ""
	}
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			end()
		case line[0] == ' ' || line[0] == '\t':
			fields[name] += " " + line
		default:
			var value string
			name, value, _ = strings.Cut(line, ":")
			name = strings.ToLower(strings.TrimSpace(name))
			fields[name] = value
		}
	}
	end()
	return all
}
