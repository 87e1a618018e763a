package process_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kmsharness/kmsharness/harness/process"
)

// maxSocket is the length of sockaddr_un.sun_path, with its final NUL.
const maxSocket = 108

func TestRunDirIsShortAndPrivate(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp/"+strings.Repeat("long", 50)) // need not exist: it is not used
	d, err := process.NewRunDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if room := maxSocket - 1 - len(d.Path); room < 45 {
		t.Errorf("%s leaves %d bytes for names below it", d.Path, room)
	}
	info, err := os.Stat(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("%s has mode %v", d.Path, info.Mode())
	}
}

func TestRunDirClose(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	d, err := process.NewRunDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.Path, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", d.Path, err)
	}
}

// Harnesses that start and end at the same time never take each other's directory for stale.
func TestRunDirConcurrency(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				d, err := process.NewRunDir(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				file := filepath.Join(d.Path, "mine")
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(file); err != nil {
					t.Error(err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestRunDirRefusesSomebodyElsesRoot(t *testing.T) {
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	root := filepath.Join(tmp, "kmsh-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(root, 0o755); err != nil { // others could look into it
		t.Fatal(err)
	}
	_, err := process.NewRunDir(t.Context())
	if err == nil || !strings.Contains(err.Error(), root) {
		t.Errorf("accepted %s: %v", root, err)
	}
}
