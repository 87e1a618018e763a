package swarm

import (
	"context"
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// Races get into the milliseconds that they are about: each finds the past mistake that no other kind of fault found, and nothing where
// that is mended.
func TestRacesFindPastMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	const seeds = 12
	for name, c := range map[string]struct {
		race  func(*drawing) []string
		seams sim.TestHooks
	}{
		"a union that was decided before the rollups were written": {(*drawing).foreignRace, sim.TestHooks{EarlyUnion: true}},
		"a union without rollups that could not be removed":        {(*drawing).removalRace, sim.TestHooks{CarelessUnion: true}},
	} {
		found, good := 0, 0
		for seed := range int64(seeds) {
			d := Plan{}.drawing(seed)
			s, err := parser.Parse(Name(seed)+".yaml", d.file([][]string{c.race(d)}))
			if err != nil {
				t.Fatal(err)
			}
			for _, seams := range []sim.TestHooks{{}, c.seams} {
				v, err := judge(context.Background(), sim.New(sim.Options{SSA: store.Model, TestHooks: seams}), s, seed)
				if err != nil {
					t.Fatal(err)
				}
				switch wrong := seams.EarlyUnion || seams.CarelessUnion; {
				case wrong && violates(v, "UNION"):
					found++
				case !wrong && v.OK:
					good++
				case !wrong:
					t.Errorf("%s: seed %d fails where it is mended: %v", name, seed, v.Problems)
				}
			}
		}
		t.Logf("%s: found by %d of %d seeds", name, found, seeds)
		if found == 0 || good != seeds {
			t.Errorf("%s: %d of %d seeds found it, %d passed without it", name, found, seeds, good)
		}
	}
}

func violates(v check.Verdict, id string) bool {
	return slices.ContainsFunc(v.Invariants, func(r check.Result) bool { return r.ID == id && r.Status == check.Failed })
}
