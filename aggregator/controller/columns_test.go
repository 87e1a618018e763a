package controller

import (
	"slices"
	"testing"

	"github.com/kmsharness/kmsharness/ci/crds"
	"github.com/kmsharness/kmsharness/contract"
)

// S1-08: kubectl shows both lists in columns.
func TestHealthHasColumns(t *testing.T) {
	list, err := crds.List(crds.TechPreview)
	must(t, err)
	var got []string
	for _, c := range list {
		if c.Spec.Names.Kind == contract.HealthKind {
			for _, column := range c.Spec.Versions[0].AdditionalPrinterColumns {
				got = append(got, column.Name+" "+column.JSONPath)
			}
		}
	}
	for _, want := range []string{`Ready .status.conditions[?(@.type=="Ready")].status`, "ReadyNodes .status.readyNodes", "NotReadyNodes .status.notReadyNodes"} {
		if !slices.Contains(got, want) {
			t.Errorf("columns %q, expected %q among them", got, want)
		}
	}
}
