package sim

import (
	"cmp"
	"context"
	"net/http"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// credentials are those of a reporter's user, by number: what its file holds, and the oldest that has not expired.
type credentials struct{ file, oldest int }

// credentialOf is that in the file of a node's reporter.
func (w *world) credentialOf(node string) int {
	return w.credentials[contract.ReporterIdentity(node)].file
}

// unauthorized reports whether the credential of a request has expired.
func (c *cluster) unauthorized(r *request) bool {
	return len(c.credentials) > 0 && r.credential < c.credentials[r.user].oldest
}

// credential lets the credential of reporters expire, or renews it. They are restarted before, as where the time of a certificate's end is
// fixed when it is made.
func (fs *faults) credential(_ context.Context, a *scenario.Credential) error {
	nodes, err := fs.e.procs.selectNodes(a.Node, true)
	if err == nil {
		err = reachable(nodes, "")
	}
	if err != nil {
		return err
	}
	renew := a.Mode == scenario.CredentialRenew
	if !renew {
		var reporters []*proc
		for _, n := range nodes {
			reporters = append(reporters, &n.reporter.proc)
		}
		restart := func(p *proc, done func(error)) { p.stop(func() { start(p, done) }) }
		if err := cmp.Or(each(fs.e, reporters, startTimeout, restart), fs.w.k.Sleep(backend.CredentialLifetime)); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		user := contract.ReporterIdentity(n.name)
		has := fs.w.credentials[user]
		if renew {
			has.file = max(has.file, has.oldest)
		} else {
			has.oldest = has.file + 1
			defer fs.w.expire(n.name)
		}
		if fs.w.credentials == nil {
			fs.w.credentials = map[string]credentials{}
		}
		fs.w.credentials[user] = has
		fs.w.record("backend", &history.Refusal{Role: history.RoleReporter, Node: n.name, Mode: history.RefuseExpired, Code: http.StatusUnauthorized, Over: renew})
	}
	return nil
}
