package kind

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// TryPlugin implements live.Plane.
func (p *plane) TryPlugin(ctx context.Context, keyID string) (*live.Plugin, error) {
	return p.try(ctx, live.HostPlugin{KeyID: keyID, Profile: &p.profile})
}

// TryPlugin implements live.Plane.
func (f *fleet) TryPlugin(ctx context.Context, keyID string) (*live.Plugin, error) {
	return f.try(ctx, live.HostPlugin{APIServer: f.Stand.APIServer, KeyID: keyID, Profile: &f.profile})
}

// try starts a plugin for a check, as a process of this machine, as the remote KMS is: so no node that a scenario takes away takes a check
// with it, and none waits for a scheduler whose API server has just been away.
func (p *plane) try(ctx context.Context, g live.HostPlugin) (*live.Plugin, error) {
	g.Node, g.Dir, g.Logs, g.KMS = live.Preflight, p.layout.preflight(g.APIServer), p.layout.logs(), p.kms
	if err := forget(g.Journal()); err != nil { // the first check of every scenario has the same name
		return nil, fmt.Errorf("try plugin %s: %w", g, err)
	}
	return g.Try(ctx, p.Host)
}
