package operated_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// Every fault of an image has words, on the nodes that it is for; those that wait until it is ended wait no longer.
func TestImages(t *testing.T) {
	var images operated.Images
	for _, fault := range scenario.ImageFaults() {
		images.Set(&scenario.Image{Image: "a", Fault: fault})
		if got := images.Fault("cp-1", "a"); got != fault || images.Fault("cp-1", "b") != scenario.ImageNone {
			t.Errorf("fault %s, want %s", got, fault)
		}
		if got := images.CannotStart("cp-1", "a"); (got == "") != (fault == scenario.ImageNone) || images.CannotStart("", "a") != got || images.CannotStart("cp-1", "b") != "" {
			t.Errorf("%s: %q", fault, got)
		}
	}
	images.Set(&scenario.Image{Image: "a", Fault: scenario.ImageMissing, Node: "cp-2"})
	if images.CannotStart("cp-1", "a") != "" || images.CannotStart("", "a") != "" || !strings.Contains(images.CannotStart("cp-2", "a"), "ImagePullBackOff") {
		t.Error("the fault of one node is not that of the node alone")
	}
	waiting := map[uint64]core.Waiting{1: {Config: config.Plugin{Image: "a"}}, 2: {Config: config.Plugin{Image: "b"}}}
	if got := images.StillWaiting("cp-2", waiting); len(got) != 1 || got[1].Reason == "" {
		t.Errorf("%+v", got)
	}
	images.Set(&scenario.Image{Image: "a", Fault: scenario.ImageNone, Node: scenario.NodeAll})
	if got := images.StillWaiting("cp-2", waiting); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// An image is named by a configuration or by a fault of it; a configuration without one names none.
func TestNamedImages(t *testing.T) {
	vault := func(image any) scenario.Step {
		return scenario.Step{Action: &scenario.APIServer{Sections: map[string]map[string]any{"vault": {"vaultKeyPath": "one", "kmsPluginImage": image}}}}
	}
	s := &scenario.Scenario{Steps: []scenario.Step{vault(nil), vault("b"), vault(7), {Action: &scenario.Image{Image: "a"}}, vault("a")}}
	if got := operated.NamedImages(s); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("named are %v", got)
	}
}
