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

// TestReportersOfAServiceAccountAreToldApart: the node of a token is as good as that of a certificate, and who writes for another one is found.
func TestReportersOfAServiceAccountAreToldApart(t *testing.T) {
	for name, tt := range map[string]struct {
		node func(string) string
		want string
	}{
		"its own node":           {func(n string) string { return n }, ""},
		"the token of its other": {strings.NewReplacer("cp-1", "cp-2", "cp-2", "cp-1").Replace, "LEAST-PRIVILEGE OWNERSHIP"},
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
