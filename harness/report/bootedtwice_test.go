package report

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/result"
)

func TestSummaryCountsFailedBoots(t *testing.T) {
	for want, results := range map[string][]result.Result{
		"": {{Scenario: "a", Status: result.Passed}},
		"1 cluster was booted twice: b: the disk is full\n":        {{Scenario: "a", Status: result.Passed}, {Scenario: "b", Status: result.Passed, FailedBoots: []string{"the disk is full"}}},
		"2 clusters were booted twice: a: x; and again: y; b: a\n": {{Scenario: "b", Status: result.Passed, FailedBoots: []string{"a\x1b"}}, {Scenario: "a", Status: result.CouldNotRun, FailedBoots: []string{"x", "y"}}},
	} {
		var text strings.Builder
		s := Summary{Backend: "kind", Results: results}
		if err := s.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(text.String(), "\n\n"+want+s.Line()+"\n") {
			t.Errorf("%q, want %q at the end", text.String(), want)
		}
	}
}
