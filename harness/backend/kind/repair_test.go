package kind

import (
	"slices"
	"strings"
	"testing"
)

func TestPlanRepair(t *testing.T) {
	for name, test := range map[string]struct {
		size    int
		there   string
		leaving string
		out, in string
	}{
		"nothing to do":         {3, "cp-1 cp-2 cp-3", "", "", ""},
		"one was removed":       {3, "cp-1 cp-2", "", "", "cp-3"},
		"one has another name":  {3, "cp-1 cp-2 cp-4", "", "cp-4", "cp-3"},
		"one was added":         {1, "cp-1 cp-2", "", "cp-2", ""},
		"one lingers":           {3, "cp-1 cp-2 cp-3", "cp-2", "cp-2", "cp-2"},
		"two were removed":      {3, "cp-2", "", "", "cp-1 cp-3"},
		"the first was another": {3, "cp-2 cp-3 new", "", "new", "cp-1"},
	} {
		r, err := planRepair(test.size, strings.Fields(test.there), func(n string) bool { return n == test.leaving })
		if err != nil || !slices.Equal(r.out, strings.Fields(test.out)) || !slices.Equal(r.in, strings.Fields(test.in)) {
			t.Errorf("%s: out %v, in %v, %v; want %s, %s", name, r.out, r.in, err, test.out, test.in)
		}
	}
}

func TestNothingToRepairFrom(t *testing.T) {
	if _, err := planRepair(3, []string{"cp-2", "x"}, func(n string) bool { return n == "cp-2" }); err == nil {
		t.Error("a plane without any of its nodes can be repaired")
	}
}
