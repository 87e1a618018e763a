package swarm_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

const hashes = "testdata/hashes.txt"

// The same seeds have the same histories on every machine: the hashes in testdata were made on another. A change of what is
// simulated, drawn or recorded changes them: UPDATE=1 go test -run TestHashes ./harness/swarm writes them anew.
func TestHashesAreThoseOfOtherMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	var text strings.Builder
	for _, c := range []struct {
		last  int64
		plan  swarm.Plan
		flags string
	}{{10, swarm.Plan{}, " --hours 0"}, {4, swarm.Plan{Length: time.Hour}, " --hours 1"}, {5, swarm.Plan{Operator: true}, " --operator"}} {
		fmt.Fprintf(&text, "kmsharness simulate --seeds 1-%d%s: %s\n", c.last, c.flags, hashOf(t, c.last, c.plan))
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(hashes, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(hashes)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("got\n%sexpected\n%sIf what is simulated was changed on purpose, write them anew with UPDATE=1.", text.String(), want)
	}
}

func hashOf(t *testing.T, last int64, plan swarm.Plan) swarm.Hash {
	t.Helper()
	o := sim.Options{SSA: store.Model, Unhealthy: sim.UnhealthyDrawn}
	if plan.Length > 0 {
		o.Timing = sim.ProductionTiming()
		plan.Timing = o.Timing
	}
	all := swarm.NewSummary(swarm.Range{From: 1, To: last}, nil)
	err := swarm.Run(context.Background(), swarm.Options{From: 1, To: last, Jobs: 2, Plan: plan, Out: t.TempDir(), Done: all.Add, Backend: sim.New(o)})
	if err != nil {
		t.Fatal(err)
	}
	return all.Hash
}
