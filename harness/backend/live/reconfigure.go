package live

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/operator/encryption"
)

// stages gives the API servers one list after another, each after all have loaded the one before, and has every object written
// anew before anything goes that may be needed to read it.
func (sw *encryptionSwitch) stages(ctx context.Context, to encryption.List) error {
	for _, s := range sw.e.opts.stages(encryption.Switch(sw.current().Providers, to)) {
		if err := sw.awaitReload(ctx, sw.e.nodes()); err != nil { // one that was down, and was not waited for, may be back
			return err
		}
		if err := sw.stage(ctx, s); err != nil {
			return fmt.Errorf("switch to %s, with the providers %s: %w", to.Writer().Name(), s.Providers, err)
		}
	}
	return nil
}

func (sw *encryptionSwitch) stage(ctx context.Context, s encryption.Stage) error {
	sw.e.mu.Lock()
	before, left := sw.e.configured.Providers, slices.Clone(sw.e.left)
	sw.e.mu.Unlock()
	if err := s.Providers.Follows(before, left); err != nil && sw.e.opts.Stages == nil {
		return err
	}
	if err := sw.configureServers(s.Providers); err != nil {
		return err
	}
	if err := sw.awaitReload(ctx, sw.e.nodes()); err != nil {
		return err
	}
	if !s.Migrate {
		return nil
	}
	if err := (migrator{sw.e}).migrate(ctx); err != nil {
		return err
	}
	sw.e.mu.Lock()
	sw.e.left = encryption.List{s.Providers.Writer()}
	sw.e.mu.Unlock()
	return nil
}

func (sw *encryptionSwitch) configureServers(providers encryption.List) error {
	sw.e.settle(sw.e.Name)
	sw.e.mu.Lock()
	sw.e.telling = true
	sw.e.configured.Providers = slices.Clone(providers)
	if !sw.e.left.Has(providers.Writer()) {
		sw.e.left = append(sw.e.left, providers.Writer())
	}
	configured := sw.e.configured
	configured.Keys = maps.Clone(configured.Keys)
	sw.e.mu.Unlock()
	defer sw.configuredAll()
	for _, n := range sw.e.nodes() {
		hash, err := n.Server.SetEncryption(configured)
		if err != nil {
			return err
		}
		names := configured.Providers.Names()
		sw.e.mu.Lock()
		sw.e.reloads[n.Name] = reload{hash, names}
		sw.e.mu.Unlock()
		sw.e.record(&history.Encryption{Node: n.Name, State: history.EncryptionConfigured, Providers: names})
	}
	return nil
}

func (sw *encryptionSwitch) configuredAll() {
	sw.e.mu.Lock()
	defer sw.e.mu.Unlock()
	sw.e.telling = false
}

// startPlugins starts the plugins of keyIDs that do not run on a node, and follows their journals from the beginning: what they were called for belongs to
// this scenario.
func (sw *encryptionSwitch) startPlugins(ctx context.Context, n *cluster.Node, keyIDs []string) error {
	for _, k := range keyIDs {
		already := n.Plugin(k) != nil && n.Plugin(k).Status().Running()
		g, err := sw.e.Plugins.AddPlugin(ctx, n, k)
		if err != nil {
			return err
		}
		if err := sw.e.recorder.FollowPlugin(g, tail.FromStart); err != nil {
			return err
		}
		if !already {
			sw.e.changes.recordReady(&g.Target)
		}
	}
	return nil
}
