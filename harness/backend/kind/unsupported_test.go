package kind

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// A reset that lasts takes effect with the next packet; one that ends at once may meet none.
func TestResetsForAMoment(t *testing.T) {
	link := func(mode string) scenario.Step {
		return scenario.Step{Action: &scenario.Link{From: history.RoleReporter, To: history.RoleAggregator, Mode: mode}}
	}
	wait := scenario.Step{}
	for _, test := range []struct {
		steps []scenario.Step
		want  bool
	}{
		{[]scenario.Step{link(history.LinkReset), link("restore")}, true},
		{[]scenario.Step{{Repeat: &scenario.Repeat{Steps: []scenario.Step{link(history.LinkReset), link("restore")}}}}, true},
		{[]scenario.Step{link(history.LinkReset), wait, link("restore")}, false},
		{[]scenario.Step{link("cut"), link("restore")}, false},
	} {
		if got := resetsForAMoment(&scenario.Scenario{Steps: test.steps}); got != test.want {
			t.Errorf("%+v: %t", test.steps, got)
		}
	}
}

func TestRoomForTwo(t *testing.T) {
	for limit, room := range map[string]bool{"128\n": false, "255": false, "256\n": true, "8192\n": true, "what": true} {
		if err := memoryForTwo(limit); (err == nil) != room {
			t.Errorf("limit %q: %v", limit, err)
		}
	}
}
