package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/process"
)

// TryPlugin implements live.Plane.
func (p *plane) TryPlugin(ctx context.Context, keyID string) (*live.Plugin, error) {
	return p.try(ctx, history.Process{Role: history.RolePlugin, KeyID: keyID}, p.key(keyID), &p.profile)
}

// TryPlugin implements live.Plane.
func (f *fleet) TryPlugin(ctx context.Context, keyID string) (*live.Plugin, error) {
	return f.try(ctx, history.Process{Role: history.RolePlugin, APIServer: f.Stand.APIServer, KeyID: keyID}, f.key(keyID), &f.profile)
}

// try starts a plugin for a check, as a process of this machine, as the remote KMS is: so no node that a scenario takes away takes a check
// with it, and none waits for a scheduler whose API server has just been away.
func (p *plane) try(ctx context.Context, identity history.Process, key string, profile *live.Profile) (*live.Plugin, error) {
	keyID := identity.KeyID
	identity.Node = live.Preflight
	dir, name := p.layout.preflight(identity.APIServer), live.NameOf(identity)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("try a plugin: %w", err)
	}
	control, journal := filepath.Join(dir, "ctl-"+keyID+".sock"), live.JournalFile(p.layout.logs(), name)
	if err := forget(journal); err != nil { // the first check of every scenario has the same name
		return nil, fmt.Errorf("try a plugin: %w", err)
	}
	g, err := live.NewPlugin(live.Preflight, keyID, live.HostSocket(dir, keyID), control, journal)
	if err != nil {
		return nil, err
	}
	g.Identity = identity
	g.Unit = p.Unit(identity, g.Healthy, func(ctx context.Context) (process.Spec, error) {
		path, err := p.Programs.Find(ctx, live.PluginProgram)
		args := live.PluginArgs(live.Preflight, keyID, dir, control, journal, p.kms.Socket, key)
		args = append(append(args, profile.Args()...), p.Programs.PluginArgs...)
		return process.Spec{Path: path, Args: args, LogFile: filepath.Join(p.layout.logs(), name+".log")}, err
	})
	if err := g.Start(ctx); err != nil {
		return nil, fmt.Errorf("try plugin %s: %w", keyID, err)
	}
	return g, nil
}
