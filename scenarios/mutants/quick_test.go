package mutants_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/lifecycle/model"
	"github.com/kmsharness/kmsharness/scenarios/mutants"
)

func TestQuick(t *testing.T) {
	for _, m := range mutants.All() {
		if !m.Modelled() {
			continue
		}
		by, first := map[string]int{}, map[string]uint64{}
		for seed := range uint64(150) {
			if v := model.Run(m.Wrong(), model.Seeded(seed), 150).Violation; v != nil {
				if by[v.ID]++; by[v.ID] == 1 {
					first[v.ID] = seed
				}
			}
		}
		t.Logf("%-40s %v want %v (first %v)", m.Name, by, m.Caught, first)
	}
}
