package model_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/operator/model"
)

// TestSweep tries as many seeds as KMSHARNESS_WORLDS says. It is for nights.
func TestSweep(t *testing.T) {
	n, err := strconv.ParseUint(os.Getenv("KMSHARNESS_WORLDS"), 10, 64)
	if err != nil {
		t.Skip("set KMSHARNESS_WORLDS to a number of worlds")
	}
	for seed := range n {
		if v := model.Run(model.Good(), model.Seeded(seed), 400).Violation; v != nil {
			t.Errorf("seed %d: %v\n%s", seed, v, strings.Join(v.Steps[max(0, len(v.Steps)-40):], "\n"))
			return
		}
	}
}
