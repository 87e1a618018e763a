package swarm_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/harness/swarm"
)

// What is drawn for an operator is a valid file, the same for the same seed, and asks for KMS at least once.
func TestDrawOperated(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(300) {
		p := swarm.Plan{Operator: true}
		text := p.Draw(seed)
		if !bytes.Equal(text, p.Draw(seed)) {
			t.Fatalf("seed %d gives two files", seed)
		}
		s, err := parser.Parse(swarm.Name(seed)+".yaml", text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if !s.Topology.ByOperator() || !strings.Contains(string(text), "type: KMS") {
			t.Fatalf("seed %d: no operator, or nothing for it to do\n%s", seed, text)
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
