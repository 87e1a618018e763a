package check

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
)

// An operator that was asked for nothing but local keys has no plugin, and something ran all the same.
func TestOperatorWithoutPlugins(t *testing.T) {
	events := operated(without(history.KindCall))()
	for i := range events {
		if x := events[i].Expected; x != nil {
			none := *x
			none.KMSActive, none.Nodes = false, slices.Clone(x.Nodes)
			for n := range none.Nodes {
				none.Nodes[n].KeyIDs = nil
			}
			events[i].Expected = &none
		}
	}
	if seen, violated := failedIDs(Run(events))["NOTHING-RAN"]; violated {
		t.Error(seen)
	}
}
