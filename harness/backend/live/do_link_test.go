package live

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Every mode of the language is a fault that can be put in force, and has a state of its own in the history.
func TestModesOfLinks(t *testing.T) {
	for mode, want := range map[string]string{"cut": history.LinkCut, "reset": history.LinkReset, "slow": history.LinkSlow, "mute": history.LinkMute, "restore": history.LinkOK} {
		f, err := faultOf(&scenario.Link{Mode: mode, Delay: scenario.Exactly(time.Second)})
		if err != nil || f.Validate() != nil || stateOf(f.Mode) != want {
			t.Errorf("%s: %+v, %v, %v, state %q, expected %q", mode, f, err, f.Validate(), stateOf(f.Mode), want)
		}
	}
	if f, err := faultOf(&scenario.Link{Mode: "deaf"}); err == nil {
		t.Errorf("mode deaf was taken for %+v", f)
	}
}
