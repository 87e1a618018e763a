package scenarios_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/scenarios"
)

// TestGivenEffects: a narrow or lossy link may let a small write through, and one that loses answers lets all through that a kept connection carries. What waits for stale reports behind one names that effect.
func TestGivenEffects(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		weak := map[scenario.Link]bool{} // by their ends
		for n, step := range s.Steps {
			if l, ok := step.Action.(*scenario.Link); ok && l.From == history.RoleReporter {
				link := scenario.Link{From: l.From, To: l.To, Node: l.Node}
				if weak[link] = l.Mode == history.LinkThrottled || l.Mode == history.LinkLossy || l.Direction == "answers"; !weak[link] {
					delete(weak, link)
				}
			}
			if x := step.Expect; x != nil && x.Mode == scenario.ModeWithin && len(weak) > 0 && strings.Contains(x.CEL, contract.ReasonReportStale) && x.Given == "" {
				t.Errorf("%s: step %d waits for %s behind a link that may let writes through, expected given", s.Name, n, contract.ReasonReportStale)
			}
		}
	}
}
