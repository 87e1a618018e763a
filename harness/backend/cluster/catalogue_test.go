package cluster_test

import (
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/cluster"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// atLeast is how much of the catalogue an existing cluster must allow.
const atLeast = 25

func TestAPartOfTheCatalogueIsSupported(t *testing.T) {
	parser, err := standard.Parser()
	if err != nil {
		t.Fatal(err)
	}
	all, err := parser.Load("../../../scenarios/catalogue")
	if err != nil {
		t.Fatal(err)
	}
	b, err := cluster.New(cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	supported := 0
	for _, s := range all {
		reasons := b.Unsupported(s)
		if len(reasons) == 0 {
			supported++
		}
		t.Logf("%s: %v", s.Name, reasons)
	}
	if supported < atLeast || supported == len(all) {
		t.Errorf("%d of %d scenarios are supported, expected at least %d and not all", supported, len(all), atLeast)
	}
	t.Logf("%d of %d scenarios are supported", supported, len(all))
}
