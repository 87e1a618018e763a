package sim_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// seedOf is in the command at the head of a scenario that was found.
var seedOf = regexp.MustCompile(`(?m)^# kmsharness run --backend sim --seed (\d+)`)

// Every defect that a simulation found stays mended: docs/track-record.md.
func TestFoundDefectsStayMended(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.Load(filepath.Join("..", "..", "..", "docs", "track-record"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		text, err := os.ReadFile(s.File)
		if err != nil {
			t.Fatal(err)
		}
		found := seedOf.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s: no seed in it", s.File)
		}
		seed, err := strconv.ParseInt(string(found[1]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := simulate(t, sim.New(sim.Options{SSA: store.Model}), s, seed)
		if r.Status != result.Passed {
			t.Errorf("%s with seed %d: %s", s.Name, seed, r.Text())
		}
	}
}
