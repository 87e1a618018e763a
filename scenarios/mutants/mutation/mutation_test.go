package mutation

import (
	"slices"
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	for in, want := range map[string]string{
		"--mutation late --a=1 b": "--a=1 b",
		"--a=1 --mutation=late b": "--a=1 b",
		"--mutation=late":         "",
	} {
		name, rest, err := Cut(strings.Fields(in), "early", "late")
		if err != nil || name != "late" || !slices.Equal(rest, strings.Fields(want)) {
			t.Errorf("%s: %q %q %v", in, name, rest, err)
		}
	}
	for _, in := range []string{"", "--mutation", "--mutation=", "--mutation never", "--a=1"} {
		if _, _, err := Cut(strings.Fields(in), "early", "late"); err == nil || !strings.Contains(err.Error(), "early, late") {
			t.Errorf("%q: %v, expected an error that names what there is", in, err)
		}
	}
}
