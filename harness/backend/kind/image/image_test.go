package image

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeDocker stands for the docker command: a file for each image that is present, one for each that can be pulled. It writes
// down what it was asked to pull.
const fakeDocker = `#!/bin/sh
cd "$(dirname "$0")" || exit 9
[ -f dead ] && { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
for image; do :; done
file=$(echo "$image" | tr / _)
case "$1 $2" in
  "image inspect") test -f "present-$file" || { echo "Error: No such image: $image" >&2; exit 1; } ;;
  pull*) echo "$image" >>pulled
    [ -f "pullable-$file" ] || { echo "Error response from daemon: no such host" >&2; exit 1; }
    echo "v1: Pulling from somewhere"; touch "present-$file" ;;
  *) echo "unexpected: $*" >&2; exit 9 ;;
esac
`

type engine struct {
	t   *testing.T
	dir string
}

func newEngine(t *testing.T) engine {
	t.Helper()
	d := engine{t, t.TempDir()}
	if err := os.WriteFile(filepath.Join(d.dir, "docker"), []byte(fakeDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", d.dir+":/usr/bin:/bin")
	t.Setenv(Env, "")
	return d
}

func (d engine) touch(name string) engine {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, strings.ReplaceAll(name, "/", "_")), nil, 0o644); err != nil {
		d.t.Fatal(err)
	}
	return d
}

func (d engine) pulled() string {
	text, _ := os.ReadFile(filepath.Join(d.dir, "pulled"))
	return strings.TrimSpace(string(text))
}

func TestResolve(t *testing.T) {
	built, err := Built()
	if err != nil || !strings.HasPrefix(built, Repository+":v1.") || strings.Contains(built, "+") {
		t.Fatalf("%q, %v", built, err)
	}
	for name, c := range map[string]struct {
		own    string
		files  []string
		want   string
		pulled string
	}{
		"own":                        {own: "mine:1", files: []string{"present-" + Official}, want: "mine:1"},
		"own, no engine":             {own: "mine:1", files: []string{"dead"}, want: "mine:1"},
		"official present":           {files: []string{"present-" + Official, "present-" + built}, want: Official},
		"other digest present":       {files: []string{"present-" + strings.Split(Official, "@")[0], "present-" + built}, want: built},
		"built, no network is asked": {files: []string{"present-" + built, "pullable-" + Official}, want: built},
		"pulled":                     {files: []string{"pullable-" + Official}, want: Official, pulled: Official},
	} {
		t.Run(name, func(t *testing.T) {
			d := newEngine(t)
			t.Setenv(Env, c.own)
			for _, f := range c.files {
				d.touch(f)
			}
			got, how, err := Resolve(t.Context())
			if err != nil || got != c.want || how == "" || d.pulled() != c.pulled {
				t.Errorf("%q (%s), %v, pulled %q; expected %q, pulled %q", got, how, err, d.pulled(), c.want, c.pulled)
			}
		})
	}
}

func TestResolveSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct{ file, cause string }{
		"nothing anywhere": {"unrelated", "no such host"},
		"no engine":        {"dead", "Cannot connect"},
	} {
		t.Run(name, func(t *testing.T) {
			newEngine(t).touch(c.file)
			_, _, err := Resolve(t.Context())
			if !errors.Is(err, ErrNone) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v", err)
			}
			for _, part := range []string{"run: make engine node-image", c.cause} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v: expected %q in it", err, part)
				}
			}
		})
	}
}

func TestNoDocker(t *testing.T) {
	t.Setenv(Env, "")
	t.Setenv("PATH", t.TempDir())
	if _, _, err := Resolve(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("%v", err)
	}
}
