package scenarios_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/scenarios"
)

// TestCatalogueParses: every file of the catalogue is valid, so that a mistake is found before anything is booted.
func TestCatalogueParses(t *testing.T) {
	all, err := scenarios.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("%d scenarios in the catalogue, at least 20 are expected", len(all))
	}
}
