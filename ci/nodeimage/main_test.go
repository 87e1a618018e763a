package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/kind/image"
)

// fakeDocker has the images that are files beside it, whose content is their label; docker load makes those of the archive.
const fakeDocker = `#!/bin/sh
cd "$(dirname "$0")" || exit 9
[ -f dead ] && { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
for image; do :; done
file=image-$(echo "$image" | tr / _)
case "$1 $2" in
  "image inspect") cat "$file" 2>/dev/null || { echo "Error: No such image: $image" >&2; exit 1; } ;;
  "pull "*) echo "Error response from daemon: Get: dial tcp: no such host" >&2; exit 1 ;;
  "load "*) gunzip >loaded && sh ./loaded ;;
  "save "*) shift; for i; do f=image-$(echo "$i" | tr / _); echo "printf %s $(cat "$f") >$f"; done ;;
  *) echo "unexpected: $*" >&2; exit 9 ;;
esac
`

// engine is a fake one, with a store that is kept beside it.
func engine(t *testing.T) (dir string, kept store) {
	t.Helper()
	dir = t.TempDir()
	put(t, dir, "docker", fakeDocker)
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv(image.Env, "")
	return dir, store{dir: t.TempDir(), want: wanted{node: "own/node:v1", balancer: "lb/lb:v1", hash: "abc"}}
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "_")), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestUnneeded(t *testing.T) {
	for name, c := range map[string]struct {
		images map[string]string
		force  bool
		want   bool
		says   string
	}{
		"nothing":          {want: false, says: "no such host"},
		"up to date":       {images: map[string]string{"own/node:v1": "abc", "lb/lb:v1": "abc"}, want: true, says: "up to date"},
		"other inputs":     {images: map[string]string{"own/node:v1": "old", "lb/lb:v1": "abc"}, want: false, says: "cannot be pulled"},
		"no load balancer": {images: map[string]string{"own/node:v1": "abc"}, want: false, says: "cannot be pulled"},
		"official":         {images: map[string]string{image.Official: ""}, want: true, says: "nothing to build"},
		"forced":           {images: map[string]string{"own/node:v1": "abc", "lb/lb:v1": "abc"}, force: true, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, kept := engine(t)
			for name, label := range c.images {
				put(t, dir, "image-"+name, label)
			}
			var said bytes.Buffer
			done, err := (&steps{out: &said, begin: time.Now()}).unneeded(t.Context(), kept, c.force)
			if err != nil || done != c.want || !strings.Contains(said.String(), c.says) || strings.Count(said.String(), "\n") > 1 {
				t.Errorf("%v, %v, said %q", done, err, said.String())
			}
		})
	}
}

func TestNoEngine(t *testing.T) {
	dir, kept := engine(t)
	put(t, dir, "dead", "")
	_, err := (&steps{out: &bytes.Buffer{}}).unneeded(t.Context(), kept, false)
	if err == nil || !strings.Contains(err.Error(), "make engine") {
		t.Errorf("%v", err)
	}
}

func TestOwnImage(t *testing.T) {
	engine(t)
	t.Setenv(image.Env, "mine:1")
	var said bytes.Buffer
	if err := run(t.Context(), &said, false); err != nil || !strings.Contains(said.String(), "mine:1: nothing to build") {
		t.Errorf("%v, said %q", err, said.String())
	}
}

// What was saved comes back after the engine has lost it; an archive of other inputs goes.
func TestStore(t *testing.T) {
	dir, kept := engine(t)
	if found, err := kept.load(t.Context()); found || err != nil {
		t.Errorf("loaded nothing: %v, %v", found, err)
	}
	old := filepath.Join(kept.dir, "nodeimage-old.tar.gz")
	put(t, kept.dir, filepath.Base(old), "")
	images := []string{"image-own_node:v1", "image-lb_lb:v1"}
	for _, name := range images {
		put(t, dir, name, "abc")
	}
	if err := kept.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the archive of other inputs is still there")
	}
	for _, name := range images {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if kept.loaded(t.Context()) {
		t.Fatal("images that were removed are there")
	}
	if found, err := kept.load(t.Context()); !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	put(t, kept.dir, filepath.Base(kept.archive()), "half an archi")
	if found, err := kept.load(t.Context()); found || err == nil {
		t.Errorf("took half an archive: %v, %v", found, err)
	}
}
