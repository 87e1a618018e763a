package standard_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// TestCatalogue keeps every file of the catalogue valid.
func TestCatalogue(t *testing.T) {
	p, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := p.Load("../../../scenarios/catalogue")
	if err != nil {
		t.Fatalf("catalogue:\n%v", err)
	}
	if len(scenarios) < 20 {
		t.Errorf("%d scenarios, expected at least 20", len(scenarios))
	}
}
