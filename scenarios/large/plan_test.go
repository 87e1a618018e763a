package main

import (
	"bytes"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// With a few objects sim carries it out, whatever is killed.
func TestSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	b := virtual.New(virtual.Options{})
	defer b.Close(t.Context())
	for seed := range uint64(2) {
		s := plan{seed: seed, objects: 40}.scenario()
		r := engine.Execute(t.Context(), b, s, engine.Execution{Out: t.TempDir(), Options: engine.Options{
			Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: int64(seed), Reproduce: "a test"}})
		if r.Status != result.Passed {
			t.Errorf("seed %d: %s %v %+v", seed, r.Status, r.Reasons, r.Failures)
		}
	}
}

// Every seed gives a scenario that can be read again, and another seed another one.
func TestScenario(t *testing.T) {
	first, err := plan{seed: 1, objects: 50}.scenario().Encode()
	if err != nil {
		t.Fatal(err)
	}
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		text, err := plan{seed: seed, objects: 50}.scenario().Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse("encryption-large-50.yaml", text); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if same := bytes.Equal(first, text); same != (seed == 1) {
			t.Errorf("seed %d: the same as seed 1: %v", seed, same)
		}
	}
}

// Whoever is killed is started again before the next is killed: one API server always answers.
func TestOneIsDownAtATime(t *testing.T) {
	down := ""
	for _, a := range (plan{seed: 3, objects: 10}).scenario().Actions() {
		switch {
		case scenario.Selected(a).Role != history.RoleAPIServer:
		case scenario.VerbOf(a) == scenario.VerbKill && down == "":
			down = scenario.Selected(a).Node
		case scenario.VerbOf(a) == scenario.VerbStart && down == scenario.Selected(a).Node:
			down = ""
		default:
			t.Errorf("%s %s while %q is down", scenario.VerbOf(a), scenario.Selected(a).Node, down)
		}
	}
}
