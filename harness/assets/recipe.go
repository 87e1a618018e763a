package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// recipe is what is built, and how.
type recipe struct {
	name         string   // of its results in the cache
	what         string   // for people
	takes        string   // for people who wait
	packages     []string // one program each
	stamp        []string // values of variables, for the linker
	version      string   // "v1.37.1+kmsharness"
	major, minor string
	files        map[string][]byte // path in the module → content
	unpinned     bool              // the go command completes go.mod, and the checksum database takes the place of go.sum
}

// args of the go command. Flags beat a GOFLAGS of the user.
func (r recipe) args(out string) []string {
	ld, mod := append([]string{"-s -w"}, r.stamp...), "-mod=readonly"
	if r.unpinned {
		mod = "-mod=mod"
	}
	return append([]string{"build", "-v", mod, "-trimpath", "-buildvcs=false",
		"-ldflags", strings.Join(ld, " -X "), "-o", out + string(filepath.Separator)}, r.packages...)
}

// programs are the names that the go command gives to what it builds: a package's last element that is no major version.
func (r recipe) programs() []string {
	var names []string
	for _, pkg := range r.packages {
		names = append(names, path.Base(strings.TrimSuffix(pkg, "/v3")))
	}
	return names
}

// env is added to the user's own, so that a proxy, a mirror or a private module cache keep working.
func (r recipe) env() []string {
	return []string{"CGO_ENABLED=0", "GOWORK=off", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
}

// key names the result in the cache: another recipe or platform is another result.
func (r recipe) key() string {
	h := sha256.New()
	fmt.Fprintln(h, r.args("out"), r.env())
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(r.files[name]), r.files[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// write puts the module below dir.
func (r recipe) write(dir string) error {
	for name, content := range r.files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
