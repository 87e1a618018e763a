package sim_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/reporter/publish"
)

// TestSizeLimit: the object grows until etcd refuses it, and the text is etcd's.
func TestSizeLimit(t *testing.T) {
	nodes, refusal, err := sim.New(sim.Options{}).SizeLimit(t.Context(), 20, sim.LongestDetail())
	if err != nil || refusal == nil || !strings.Contains(refusal.Error(), "request is too large") || nodes < 20 {
		t.Errorf("%d nodes, %v, %v", nodes, refusal, err)
	}
}

// TestFill: half of an object with many reports is managedFields, and the typed list has its own limit.
func TestFill(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make simulations")
	}
	b := sim.New(sim.Options{})
	for _, form := range []publish.Form{publish.Conditions, publish.HealthReports} {
		f, err := b.Fill(t.Context(), 30, 1, form, "")
		if err != nil || f.Nodes != 30 || f.Refusal != nil || f.ManagedFields < f.Bytes/3 || f.ManagedFields >= f.Bytes || f.Body == 0 {
			t.Errorf("%s: %+v, %v", form, f, err)
		}
	}
	f, err := b.Fill(t.Context(), contract.MaxTypedReports+1, 1, publish.HealthReports, "")
	if err != nil || f.Nodes != contract.MaxTypedReports || f.Refusal == nil || !strings.Contains(f.Refusal.Error(), "Too many") {
		t.Errorf("%+v, %v", f, err)
	}
}
