package model_test

import (
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// steps of a world. Longer ones find nothing that these do not.
const steps = 150

// TestNothingIsLost: whatever happens in between, no object is ever unreadable, nothing is left behind, and the operator comes to rest.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		if v, _ := run(good(), choose, rapid.IntRange(0, steps).Draw(t, "steps")); v != nil {
			t.Fatal(v)
		}
	})
}

// TestSeeds: the same with plain seeds, which go further than what a shrinking search tries.
func TestSeeds(t *testing.T) {
	n := uint64(150)
	if testing.Short() {
		n = 30
	}
	did := map[string]int{}
	for seed := range n {
		v, by := run(good(), seeded(seed), steps)
		if v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
		for action, times := range by {
			did[action] += times
		}
	}
	t.Logf("%v", did)
}

// TestSweep tries as many seeds as KMSHARNESS_WORLDS says. It is for nights.
func TestSweep(t *testing.T) {
	n, err := strconv.ParseUint(os.Getenv("KMSHARNESS_WORLDS"), 10, 64)
	if err != nil {
		t.Skip("set KMSHARNESS_WORLDS to a number of worlds")
	}
	for seed := range n {
		if v, _ := run(good(), seeded(seed), 400); v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
	}
}

// TestPrunedRevisionStaysOnDisk: a Secret that is deleted empties no file of a node.
func TestPrunedRevisionStaysOnDisk(t *testing.T) {
	w := newWorld(good(), seeded(1))
	w.configs[1] = revision.Config{Revision: 1, Keys: []uint64{1, revision.Plain}}
	w.executor.prune(core.Prune{Configs: []int{1, 2}})
	if c := w.config(1); len(w.configs) > 0 || !c.Reads(1) {
		t.Errorf("a node reads %v from its file, and %d revisions are left", c.Keys, len(w.configs))
	}
	if c := w.config(2); c.Reads(1) {
		t.Errorf("a revision that never was has the keys %v", c.Keys)
	}
}
