package report

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/check"
)

func TestCoverageNamesWhatJudgedNothing(t *testing.T) {
	verdicts := []check.Verdict{
		{Invariants: []check.Result{{ID: "QUIET", Judged: 3}, {ID: "UID"}}},
		{Invariants: []check.Result{{ID: "QUIET"}, {ID: "UID"}}},
	}
	if got, want := CoverageOf(verdicts), "invariants: 1 of 2 were exercised; judged nothing: UID"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}
