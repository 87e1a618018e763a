package operand_test

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// An image of the registry that does not exist cannot be pulled, on all nodes and for a pre-flight check or on one node.
func TestCannotStart(t *testing.T) {
	for image, want := range map[string][]bool{ // for a pre-flight check, on cp-1 and on cp-2
		"registry.example.com/kms/newer@sha256:1": {false, false, false}, "missing.invalid/kms/newer@sha256:1": {true, true, true},
		"cp-2.missing.invalid/kms/newer@sha256:1": {false, false, true}, "registry.example.com/missing.invalid@sha256:1": {false, false, false},
	} {
		for i, node := range []string{"", "cp-1", "cp-2"} {
			if why := operand.CannotStart(node, image); (why != "") != want[i] {
				t.Errorf("%s on %q: %q", image, node, why)
			}
		}
	}
}

// A configuration without an image names none.
func TestNamedImages(t *testing.T) {
	vault := func(image any) scenario.Step {
		return scenario.Step{Action: &scenario.APIServer{Sections: map[string]map[string]any{"vault": {"vaultKeyPath": "one", "kmsPluginImage": image}}}}
	}
	s := &scenario.Scenario{Steps: []scenario.Step{vault(nil), vault("b"), vault(7), vault("a"), vault("b")}}
	if got := operand.NamedImages(s); !slices.Equal(got, []string{"a", "b"}) || operand.NamesMissing(s) {
		t.Errorf("%q, missing %t", got, operand.NamesMissing(s))
	}
	if s.Steps = append(s.Steps, vault("cp-1.missing.invalid/a")); !operand.NamesMissing(s) {
		t.Error("a missing image was not found")
	}
}
