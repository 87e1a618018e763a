package main

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/check"
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

// A verdict that changes in any count has another line.
func TestSummaryShowsWhatChanges(t *testing.T) {
	result := func(change func(*check.Result)) string {
		r := check.Result{ID: "QUIET", Judged: 3}
		change(&r)
		return summary(check.Verdict{Outcome: check.RunPassed, Invariants: []check.Result{r}})
	}
	same := result(func(*check.Result) {})
	for name, change := range map[string]func(*check.Result){
		"judged":   func(r *check.Result) { r.Judged++ },
		"violated": func(r *check.Result) { r.Count++ },
		"starved":  func(r *check.Result) { r.StarvedCount++ },
		"house":    func(r *check.Result) { r.House = make([]check.Violation, 1) },
	} {
		if result(change) == same {
			t.Errorf("%s: the same line", name)
		}
	}
}
