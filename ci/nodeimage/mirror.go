package main

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
)

// envMirror names a Debian mirror.
const envMirror = "KMSHARNESS_DEBIAN_MIRROR"

// suites of Debian's archive. A mirror that has one of them has the one that the image is made of.
var suites = []string{"bookworm", "trixie", "forky", "bullseye", "sid", "oldstable", "stable", "testing", "unstable"}

// aptTargets are the indexes of packages that apt is configured with, in its order, a line each: URI, suite, component and origin. apt names those that
// it has read: where it has read none, it does so now. Without apt there are none.
func aptTargets(ctx context.Context) string {
	const list = `list() { apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Identifier: Packages'; }`
	out, err := exec.CommandContext(ctx, "sh", "-c", list+`; [ -n "$(list)" ] || apt-get update -q >&2; list`).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// debianMirror is where Debian's packages come from: the named mirror, or the first among the targets of apt.
func debianMirror(named, targets string) (string, error) {
	if named != "" {
		return named, nil
	}
	for line := range strings.Lines(targets) {
		if f := strings.Fields(line); len(f) == 4 && debian(f[0], f[1], f[2], f[3]) {
			return f[0], nil
		}
	}
	return "", fmt.Errorf("apt has no Debian mirror in /etc/apt/sources.list{,.d}: set %s to one, for example http://HOST/debian", envMirror)
}

// debian reports whether a target is of Debian's main archive, which security suites and packages of others are not.
func debian(uri, suite, component, origin string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "file" {
		return false
	}
	official := origin == "Debian" || slices.Contains(strings.Split(u.Path, "/"), "debian")
	return official && component == "main" && slices.Contains(suites, suite)
}
