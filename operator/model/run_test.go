package model_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/operator/model"
)

// steps of a world. Longer ones find nothing that these do not.
const steps = 150

// TestNothingIsLost: whatever happens in between, no object is ever unreadable, nothing is left behind, and the operator comes to rest.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		if v := model.Run(model.Good(), choose, rapid.IntRange(0, steps).Draw(t, "steps")).Violation; v != nil {
			t.Fatalf("%v\n%s", v, strings.Join(v.Steps, "\n"))
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
		o := model.Run(model.Good(), model.Seeded(seed), steps)
		if v := o.Violation; v != nil {
			t.Fatalf("seed %d: %v\n%s", seed, v, strings.Join(v.Steps, "\n"))
		}
		for action, times := range o.Did {
			did[action] += times
		}
	}
	t.Logf("%v", did)
}
