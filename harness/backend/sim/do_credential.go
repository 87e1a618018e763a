package sim

import (
	"context"
	"net/http"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// credentials are those of a node's reporter, by number: what its file holds, and the oldest that has not expired.
type credentials struct{ file, oldest int }

// tokenPeriod is how often client-go reads the file of a token again.
const tokenPeriod = 50 * time.Second

// serviceAccount reports whether reporters have the service account of their pod, in place of certificates.
func (w *world) serviceAccount() bool {
	return w.apiServer == "" && w.connectivity == history.ConnectService
}

// asReporter makes a request that of a node's reporter.
func (w *world) asReporter(node string, r *request) {
	r.user = contract.ReporterIdentity(node)
	if w.serviceAccount() {
		r.user, r.tokenNode = contract.ReporterAccount(contract.Namespace), node
	}
}

// unauthorized reports whether the credential of a request has expired.
func (c *cluster) unauthorized(r *request) bool {
	if len(c.credentials) == 0 {
		return false
	}
	node, _ := contract.NodeOfReporter(r.user, r.tokenNode)
	return r.credential < c.credentials[node].oldest
}

// credential lets the credential of reporters expire, renews or rotates it. They are restarted before, as where the time of a credential's end is
// fixed when it is made.
func (fs *faults) credential(_ context.Context, a *scenario.Credential) error {
	if a.Provider {
		return fs.providerCredential(a)
	}
	nodes, err := fs.e.procs.selectNodes(a.Node, true)
	if err == nil {
		err = reachable(nodes, "")
	}
	if err != nil {
		return err
	}
	change := func(to func(*credentials)) {
		for _, n := range nodes {
			has := fs.w.credentials[n.name]
			to(&has)
			if fs.w.credentials == nil {
				fs.w.credentials = map[string]credentials{}
			}
			fs.w.credentials[n.name] = has
			fs.w.expire(n.name)
		}
	}
	if a.Mode == scenario.CredentialRenew {
		change(func(c *credentials) { c.file = max(c.file, c.oldest) })
		fs.expired(nodes, true)
		return nil
	}
	var reporters []*proc
	for _, n := range nodes {
		reporters = append(reporters, &n.reporter.proc)
	}
	restart := func(p *proc, done func(error)) { p.stop(func() { start(p, done) }) }
	if err := each(fs.e, reporters, startTimeout, restart); err != nil {
		return err
	}
	if a.Mode == scenario.CredentialRotate {
		change(func(c *credentials) { c.file++ })
		err := fs.w.k.Sleep(backend.CredentialOverlap)
		change(func(c *credentials) { c.oldest = c.file })
		return err
	}
	err = fs.w.k.Sleep(backend.CredentialLifetime)
	change(func(c *credentials) { c.oldest = c.file + 1 })
	fs.expired(nodes, false)
	return err
}

// expired records that API servers refuse the reporters of nodes, or no longer.
func (fs *faults) expired(nodes []*node, over bool) {
	refusal := history.Refusal{Role: history.RoleReporter, Mode: history.RefuseExpired, Code: http.StatusUnauthorized, Over: over}
	if fs.w.serviceAccount() {
		refusal.RetryAfter = backend.TokenReload
	}
	for _, n := range nodes {
		of := refusal
		of.Node = n.name
		fs.w.record("backend", &of)
	}
}
