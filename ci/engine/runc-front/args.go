package main

import (
	"path/filepath"
	"slices"
	"strings"
)

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
