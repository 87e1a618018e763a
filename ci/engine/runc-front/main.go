// Command runc-front stands before runc on a host whose bounding set lacks capabilities, where runc refuses specs that ask
// for them. It takes out of a spec what this host cannot grant, and then becomes runc. ci/engine/up.sh installs it, on such
// hosts only.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintf(os.Stderr, "runc-front: %v\n", err)
		os.Exit(127)
	}
}

// run does not return on success: the process is runc then, with the same id, arguments and descriptors.
func run(args []string) error {
	if path, kind := specOf(args[1:]); kind != noSpec {
		l, err := hostLimits()
		if err != nil {
			return fmt.Errorf("read what this host can grant: %w", err)
		}
		if err := rewriteFile(path, kind, l); err != nil {
			return fmt.Errorf("rewrite the spec %s: %w", path, err)
		}
	}
	real, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("find the real runc: %w", err)
	}
	return syscall.Exec(real, append([]string{"runc"}, args[1:]...), os.Environ())
}

// specKind says what a file describes: a container with its process, or a process alone.
type specKind int

const (
	noSpec specKind = iota
	containerSpec
	processSpec
)

// specOf finds the file that a runc command line reads its spec from.
func specOf(args []string) (path string, kind specKind) {
	for _, command := range args {
		switch command {
		case "create", "run":
			return filepath.Join(option(args, "--bundle", "-b"), "config.json"), containerSpec
		case "exec":
			if p := option(args, "--process", "-p"); p != "" {
				return p, processSpec
			}
			return "", noSpec
		}
	}
	return "", noSpec
}

// option is the value of a flag, in either of its forms.
func option(args []string, names ...string) string {
	for i, arg := range args {
		if name, value, ok := strings.Cut(arg, "="); ok && slices.Contains(names, name) {
			return value
		}
		if slices.Contains(names, arg) && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
