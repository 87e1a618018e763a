package main

import (
	"slices"
	"testing"
)

func TestDifferences(t *testing.T) {
	want, got := []string{"a: 1", "b: 1"}, []string{"b: 2", "a: 1", "c: 1"}
	if d := Differences(want, got); !slices.Equal(d, []string{"- b: 1", "+ b: 2", "+ c: 1"}) {
		t.Errorf("got %q", d)
	}
	if d := Differences(want, want); d != nil {
		t.Errorf("of equal results: %q", d)
	}
}

// A line does not depend on the order in which something failed, nor on how often.
func TestVerdict(t *testing.T) {
	if a, b := verdict("a", "failed", []string{"QUIET", "CADENCE", "QUIET"}), verdict("a", "failed", []string{"CADENCE", "QUIET"}); a != b || a != "a: failed CADENCE QUIET" {
		t.Errorf("%q and %q", a, b)
	}
	if v := verdict("a", "passed", nil); v != "a: passed" {
		t.Errorf("%q", v)
	}
}

// Fewer seeds leave out what is on record of the others, and nothing else.
func TestSeedOf(t *testing.T) {
	for line, want := range map[string]int{
		"--seeds 151-200 --operator: all passed": 200, "seed 17 --hours 1: failed QUIET": 17,
		"scenario plugin-hangs: passed": 0, "mutant seedless (conditions): failed CADENCE": 0,
	} {
		if got := seedOf(line); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
}
