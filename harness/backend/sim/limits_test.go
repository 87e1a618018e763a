package sim_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/harness/backend/sim"
)

// TestSizeLimit: the object grows until etcd refuses it, and the text is etcd's.
func TestSizeLimit(t *testing.T) {
	nodes, refusal, err := sim.New(sim.Options{}).SizeLimit(20, sim.LongestDetail())
	if err != nil || refusal == nil || !strings.Contains(refusal.Error(), "request is too large") || nodes < 20 {
		t.Errorf("%d nodes, %v, %v", nodes, refusal, err)
	}
}
