package scenario_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// The closest scenario is the one that does the same, not the one that shares small words.
func TestClosest(t *testing.T) {
	link := &scenario.Link{From: "aggregator", To: "load-balancer", Mode: "slow"}
	hang := &scenario.Inject{Fault: "hang"}
	all := []*scenario.Scenario{
		{Name: "a", Title: "It is all of this and that.", Area: "kms"},
		{Name: "plugin-hangs", Title: "A hung Status is an error.", Area: "plugin", Steps: []scenario.Step{{Action: hang}}},
		{Name: "balancer", Title: "It costs time.", Area: "network", Steps: []scenario.Step{{Action: link}}},
	}
	for keywords, want := range map[string]string{"a plugin that is hung": "plugin-hangs", "the load balancer of this is slow": "balancer", "": "a"} {
		if got := scenario.Closest(all, "", keywords); got.Name != want {
			t.Errorf("%q: %s, expected %s", keywords, got.Name, want)
		}
	}
	if got := scenario.Closest(all, "network", "something else"); got.Name != "balancer" {
		t.Errorf("by area: %s", got.Name)
	}
	if scenario.Closest(nil, "kms") != nil {
		t.Error("expected none of none")
	}
}
