package live

import (
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Every mode of the language is a fault that can be put in force, and has a state of its own in the history.
func TestModesOfLinks(t *testing.T) {
	second := scenario.D("1s")
	for want, a := range map[string]scenario.Link{
		history.LinkOK: {Mode: "restore"}, history.LinkCut: {Mode: "cut", Direction: "answers"}, history.LinkReset: {Mode: "reset"}, history.LinkMute: {Mode: "mute"},
		history.LinkSlow: {Mode: "slow", Delay: second}, history.LinkSlowHandshake: {Mode: "slow-handshake", Delay: second},
		history.LinkThrottled: {Mode: "throttled", Rate: 500}, history.LinkLossy: {Mode: "lossy", Loss: 5},
	} {
		resolved, err := scenario.Resolve(&a, contract.DefaultTiming(), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := resolved.(*scenario.Link)
		f, err := faultOf(a)
		if err != nil || stateOf(f.Mode) != want || f.Delay != a.Delay.Value() || string(f.Direction) != a.Direction || f.Rate != a.Rate || f.Loss != a.Loss {
			t.Errorf("%+v: %+v, %v, state %q, expected %q", a, f, err, stateOf(f.Mode), want)
		}
	}
	if stateOf(netfault.Fault{}.Mode) != history.LinkOK {
		t.Errorf("the zero fault is %q", stateOf(netfault.Fault{}.Mode))
	}
	for _, mode := range []string{"deaf", "stale"} { // that of a list is no fault of a connection
		if f, err := faultOf(&scenario.Link{Mode: mode}); err == nil {
			t.Errorf("mode %s was taken for %+v", mode, f)
		}
	}
}
