package live

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/lifecycle/encryption"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// stages gives the API servers one list after another, each after all have loaded the one before, and has every object written
// anew before anything goes that may be needed to read it.
func (e *Environment) stages(ctx context.Context, to encryption.List) error {
	for _, s := range encryption.Switch(e.current().Providers, to) {
		if err := e.awaitReload(ctx, e.nodes()); err != nil { // one that was down, and was not waited for, may be back
			return err
		}
		if err := e.stage(ctx, s); err != nil {
			return fmt.Errorf("switch to %s, with the providers %s: %w", to.Writer().Name(), s.Providers, err)
		}
	}
	return nil
}

func (e *Environment) stage(ctx context.Context, s encryption.Stage) error {
	e.mu.Lock()
	before, left := e.told.Providers, slices.Clone(e.left)
	e.mu.Unlock()
	if err := s.Providers.Follows(before, left); err != nil {
		return err
	}
	if err := e.configureServers(s.Providers); err != nil {
		return err
	}
	if err := e.awaitReload(ctx, e.nodes()); err != nil {
		return err
	}
	if !s.Migrate {
		return nil
	}
	if err := e.migrate(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	e.left = encryption.List{s.Providers.Writer()}
	e.mu.Unlock()
	return nil
}

// configureServers writes the files of all API servers.
func (e *Environment) configureServers(providers encryption.List) error {
	e.mu.Lock()
	e.telling = true
	e.told.Providers = slices.Clone(providers)
	if !e.left.Has(providers.Writer()) {
		e.left = append(e.left, providers.Writer())
	}
	told := e.told
	told.Keys = maps.Clone(told.Keys)
	e.mu.Unlock()
	defer e.toldAll()
	for _, n := range e.nodes() {
		hash, err := n.Server.SetEncryption(told)
		if err != nil {
			return err
		}
		names := told.Providers.Names()
		e.mu.Lock()
		e.reloads[n.Name] = reload{hash, names}
		e.mu.Unlock()
		e.record(&history.Encryption{Node: n.Name, State: history.EncryptionTold, Providers: names})
	}
	return nil
}

func (e *Environment) toldAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.telling = false
}

func (e *Environment) startPlugins(ctx context.Context, n *Node, keyIDs []string) error {
	for _, k := range keyIDs {
		already := n.Plugin(k) != nil && n.Plugin(k).Status().Lives()
		g, err := e.plane.AddPlugin(ctx, n, k)
		if err != nil {
			return err
		}
		if err := e.recorder.followPlugin(g, tail.FromStart); err != nil {
			return err
		}
		if !already {
			e.recordReady(&g.Target)
		}
	}
	return nil
}

// DropPlugins ends the plugins of keyIDs that are no longer used.
func (n *Node) DropPlugins(ctx context.Context, keep []string) error {
	for _, g := range n.Plugins() {
		if slices.Contains(keep, g.KeyID) {
			continue
		}
		n.RemovePlugin(g.KeyID)
		if err := g.close(ctx); err != nil {
			return err
		}
	}
	return nil
}
