package local

import (
	"context"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// TestAPlaneIsRenewed: whatever faults a scenario leaves on a plane, the next one has a plane as good as new, with its own plugins; what changed
// the nodes, etcd or the encryption costs a boot.
func TestAPlaneIsRenewed(t *testing.T) {
	b := newBackend(t, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 2*smokeTimeout) // five scenarios
	defer cancel()
	process := func(verb scenario.Verb, role, node, keyID string) scenario.Action {
		return &scenario.Process{Do: verb, Target: scenario.Selector{Role: role, Node: node, KeyID: keyID}}
	}
	for i, damage := range []struct {
		keyIDs []string
		do     []scenario.Action
	}{
		{nil, []scenario.Action{process(scenario.VerbKill, history.RolePlugin, "cp-1", "1"), &scenario.Data{Op: "write", Count: 2, Size: 100}}},
		{[]string{"2", "1"}, []scenario.Action{process(scenario.VerbKill, history.RoleAPIServer, "cp-2", "")}},
		{nil, []scenario.Action{&scenario.Node{Remove: "cp-2"}}},
		{nil, []scenario.Action{&scenario.Encryption{Type: "KMS", KeyIDs: []string{"3"}}}},
		{nil, nil},
	} {
		s := (&scenario.Scenario{Name: "damage", Topology: scenario.Topology{ControlPlanes: 2, KeyIDs: damage.keyIDs}}).WithDefaults()
		t.Logf("scenario %d", i+1)
		w := newWorld(t, b, ctx, s)
		w.degraded("False", contract.ReasonAsExpected)
		for _, n := range []string{"cp-1", "cp-2"} {
			w.has("its own plugins at "+n, func(e history.Event) bool {
				return e.Expected != nil && len(e.Expected.Nodes) == 2 && len(e.Expected.Nodes[0].KeyIDs) == max(len(damage.keyIDs), 1)
			})
		}
		for _, a := range damage.do {
			w.do(a)
		}
		if err := w.env.Finish(ctx); err != nil {
			t.Log(err) // nobody heals here
		}
		if err := w.env.Release(ctx, false); err != nil {
			t.Log(err)
		}
	}
	if next, _ := b.Number(); next != 4 {
		t.Errorf("%d control planes were booted, expected three", next-1)
	}
}
