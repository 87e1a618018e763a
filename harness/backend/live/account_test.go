package live

import (
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
	for _, generation := range []string{"one", "two", "three"} {
		if err := project(dir, map[string][]byte{"token": []byte(generation), "namespace": []byte("n")}); err != nil {
			t.Fatal(err)
		}
		if got := read("token"); got != generation || read("namespace") != "n" {
			t.Errorf("token %q, namespace %q, expected %q and n", got, read("namespace"), generation)
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
