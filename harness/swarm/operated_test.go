package swarm_test

import (
	"context"
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// What is drawn for an operator asks for KMS at least once.
func TestDrawOperated(t *testing.T) {
	seeds := int64(300)
	if testing.Short() {
		seeds = 20
	}
	p := parser(t)
	for seed := range seeds {
		s := drawn(t, p, swarm.Plan{Operator: true}, seed)
		asks := slices.ContainsFunc(s.Actions(), func(a scenario.Action) bool {
			c, ok := a.(*scenario.APIServer)
			return ok && c.Type == scenario.TypeKMS
		})
		if !s.Topology.ByOperator() || !asks {
			t.Fatalf("seed %d: no operator, or nothing for it to do\n%s", seed, file(t, swarm.Plan{Operator: true}, seed))
		}
	}
}

// Whatever is drawn, the operator gets there, and its switches are judged.
func TestOperatedSeedsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	s := swarm.NewSummary(swarm.Range{From: 1, To: 2}, nil)
	err := swarm.Run(context.Background(), swarm.Options{From: 1, To: 2, Out: t.TempDir(), Done: s.Add, Plan: swarm.Plan{Operator: true},
		Backend: virtual.New(virtual.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if s.Passed != 2 {
		t.Errorf("%d of 2 passed\n%s", s.Passed, text(t, s))
	}
	for _, id := range []string{"SWITCH-ORDER", "NO-DATA-LOSS"} {
		if s.Invariants[id].Judged == 0 {
			t.Errorf("%s was never judged", id)
		}
	}
}
