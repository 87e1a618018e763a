package pool_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/pool"
)

func TestPlanRepair(t *testing.T) {
	for name, test := range map[string]struct {
		wanted  string
		there   string
		leaving string
		out, in string
	}{
		"nothing to do":         {"cp-1 cp-2 cp-3", "cp-1 cp-2 cp-3", "", "", ""},
		"one was removed":       {"cp-1 cp-2 cp-3", "cp-1 cp-2", "", "", "cp-3"},
		"one has another name":  {"cp-1 cp-2 cp-3", "cp-1 cp-2 cp-4", "", "cp-4", "cp-3"},
		"one was added":         {"cp-1", "cp-1 cp-2", "", "cp-2", ""},
		"one lingers":           {"cp-1 cp-2 cp-3", "cp-1 cp-2 cp-3", "cp-2", "cp-2", "cp-2"},
		"two were removed":      {"cp-1 cp-2 cp-3", "cp-2", "", "", "cp-1 cp-3"},
		"the first was another": {"cp-1 cp-2 cp-3", "cp-2 cp-3 new", "", "new", "cp-1"},
	} {
		r, err := pool.PlanRepair(strings.Fields(test.wanted), strings.Fields(test.there), func(n string) bool { return n == test.leaving })
		if err != nil || !slices.Equal(r.Out, strings.Fields(test.out)) || !slices.Equal(r.In, strings.Fields(test.in)) {
			t.Errorf("%s: out %v, in %v, %v; want %s, %s", name, r.Out, r.In, err, test.out, test.in)
		}
	}
}

func TestNothingToRepairFrom(t *testing.T) {
	leaves := func(n string) bool { return n == "cp-2" }
	if _, err := pool.PlanRepair([]string{"cp-1", "cp-2", "cp-3"}, []string{"cp-2", "x"}, leaves); err == nil {
		t.Error("a plane without any of its nodes can be repaired")
	}
}
