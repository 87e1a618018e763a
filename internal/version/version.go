// Package version reads the version of the running program from what the go command records in it.
package version

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"
)

// Kubernetes is the release of Kubernetes that the programs are built for and tested with.
const Kubernetes = "1.37"

const unknown = "unknown"

// Info is what `kmsharness version -o json` prints.
type Info struct {
	Version    string   `json:"version"`
	Commit     string   `json:"commit"`
	Date       string   `json:"date"` // of the commit
	Go         string   `json:"go"`
	Kubernetes []string `json:"kubernetes"`
}

// Read returns the version of the running program. A program that was built outside of a repository has no commit.
func Read() Info {
	info := Info{Version: unknown, Commit: unknown, Date: unknown, Go: unknown, Kubernetes: []string{Kubernetes}}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.Version, info.Go = cmp.Or(build.Main.Version, unknown), build.GoVersion
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.time":
			info.Date = s.Value
		}
	}
	return info
}

// Line is the version on one line.
func (i Info) Line(program string) string {
	return fmt.Sprintf("%s %s, commit %s of %s, %s, Kubernetes %s\n", program, i.Version, i.Commit, i.Date, i.Go, i.Kubernetes[0])
}

// Asked prints the version if the command line asks for it and for nothing else: for programs without commands.
func Asked(program string, args []string, w io.Writer) bool {
	if len(args) != 1 || args[0] != "--version" {
		return false
	}
	fmt.Fprint(w, Read().Line(program))
	return true
}
