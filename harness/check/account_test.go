package check

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// ofAccount makes reporters those of a Deployment: they have one service account, and tokens that name node's node.
func ofAccount(node func(string) string) func() []history.Event {
	return plain(requestAs(func(_ *world, r *history.Request) {
		if n, ok := strings.CutPrefix(r.User, contract.ReporterIdentityPrefix); ok {
			r.User, r.TokenNode = contract.ReporterAccount(contract.Namespace), node(n)
		}
	}))
}

// TestReportersOfAServiceAccountAreDistinguished: a token names the node as a certificate does, and a write for another node is found.
func TestReportersOfAServiceAccountAreDistinguished(t *testing.T) {
	for name, tt := range map[string]struct {
		node func(string) string
		want string
	}{
		"its own node":              {func(n string) string { return n }, ""},
		"the token of another node": {strings.NewReplacer("cp-1", "cp-2", "cp-2", "cp-1").Replace, "LEAST-PRIVILEGE OWNERSHIP"},
	} {
		failed := failedIDs(Run(ofAccount(tt.node)()))
		for id := range failed {
			if !strings.Contains(tt.want, id) {
				t.Errorf("%s: %s failed", name, id)
			}
		}
		for _, id := range strings.Fields(tt.want) {
			if _, ok := failed[id]; !ok {
				t.Errorf("%s: %s did not fail", name, id)
			}
		}
	}
}

// TestACredentialIsThatOfItsReporter: what expires on one node excuses no other, whichever API server they use.
func TestACredentialIsThatOfItsReporter(t *testing.T) {
	for node, excused := range map[string]bool{"cp-1": false, "cp-2": true} {
		w := newWorld(3, "1")
		w.run.Connectivity = history.ConnectService
		expired := func(over bool) {
			w.record("backend", &history.Refusal{Role: history.RoleReporter, Node: node, Mode: history.RefuseExpired, Code: 401, Over: over})
		}
		w.at(10*sec, func(w *world) { w.rep["cp-2"].cut = true; expired(false) })
		w.at(22*sec, func(w *world) { w.rep["cp-2"].cut = false; expired(true) })
		w.boot()
		if _, violated := failedIDs(Run(w.finish(40 * sec)))["CADENCE"]; violated == excused {
			t.Errorf("the credential of %s: CADENCE violated %v, expected %v", node, violated, !excused)
		}
	}
}
