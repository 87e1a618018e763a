package live

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProjectReplacesAllFilesAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for generation, mode := range map[string]os.FileMode{"one": 0, "two": 0o644, "three": 0o640} {
		if err := project(dir, mode, map[string][]byte{"token": []byte(generation), "namespace": []byte("n")}); err != nil {
			t.Fatal(err)
		}
		if got := read("token"); got != generation || read("namespace") != "n" {
			t.Errorf("token %q, namespace %q, expected %q and n", got, read("namespace"), generation)
		}
		file, err1 := os.Stat(filepath.Join(dir, "token"))
		folder, err2 := os.Stat(filepath.Join(dir, "..data"))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		wanted := map[os.FileMode][2]os.FileMode{0: {0o600, 0o700}, 0o644: {0o644, 0o755}, 0o640: {0o640, 0o750}}[mode]
		if got := [2]os.FileMode{file.Mode().Perm(), folder.Mode().Perm()}; got != wanted {
			t.Errorf("mode %o: file and folder have %o, expected %o", mode, got, wanted)
		}
		var names []string
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				continue // the newest files
			}
			names = append(names, e.Name())
		}
		if want := []string{"..data", "namespace", "token"}; !slices.Equal(names, want) || len(entries) != len(want)+1 {
			t.Errorf("%v of %d entries, expected %v and one folder", names, len(entries), want)
		}
		if target, err := os.Readlink(filepath.Join(dir, "token")); err != nil || target != "..data/token" {
			t.Errorf("token leads to %q, %v", target, err)
		}
	}
}
