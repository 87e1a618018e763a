package version_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/version"
)

// TestKubernetes: the constant is the release of the client that the programs are built with.
func TestKubernetes(t *testing.T) {
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	client := "k8s.io/client-go v0." + strings.TrimPrefix(version.Kubernetes, "1.") + "."
	if !strings.Contains(string(module), client) {
		t.Errorf("go.mod has no %s, expected that of Kubernetes %s", client, version.Kubernetes)
	}
}
