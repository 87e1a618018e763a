package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/objects"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Reset implements pool.Plane; what it proves is objects.Reset's.
func (p *controlPlane) Reset(ctx context.Context, s *scenario.Scenario) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.StartTimeout)
	defer cancel()
	used := p.used
	p.used = true
	restore := []func(context.Context) error{func(ctx context.Context) error {
		if !used {
			return nil
		}
		return p.repair(ctx, live.KeyIDs(s))
	}}
	for _, f := range p.fleets {
		restore = append(restore, func(ctx context.Context) error { return clearPlugins(ctx, &f.nodes) })
	}
	return objects.Reset(ctx, p.Parts(), s, restore...)
}

// clearLinks ends every fault on the ways between programs.
func (p *controlPlane) clearLinks(ctx context.Context) error {
	p.lb.Update()
	errs := []error{p.frontUnit.Start(ctx)}
	for _, s := range p.servers() {
		name := s.Info().Name
		errs = append(errs, p.links.set(name, netfault.Fault{}), s.SetEtcdLink(netfault.Fault{}), p.lb.Set(name, netfault.Fault{}))
	}
	return errors.Join(errs...)
}

// clearPlugins starts what does not run, and ends every fault.
func clearPlugins(ctx context.Context, nodes *cluster.Nodes) error {
	var errs []error
	for _, n := range nodes.List() {
		for _, g := range n.Plugins() {
			if err := g.Start(ctx); err != nil {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, g.Clear(ctx))
		}
	}
	return errors.Join(errs...)
}

// repair prepares a control plane that was used for the next scenario. Where more than faults and data happened, another one boots. It ends faults, and gives the nodes their plugins and API servers that were told to use them.
func (p *controlPlane) repair(ctx context.Context, keyIDs []string) error {
	if err := errors.Join(p.clearLinks(ctx), p.kms.Clear(ctx)); err != nil {
		return err
	}
	p.states = cluster.NodeStates{}
	restore := func(ctx context.Context, n *cluster.Node) error { return p.restore(ctx, n, keyIDs) }
	if err := cluster.EachNode(ctx, p.nodes.List(), restore); err != nil {
		return err
	}
	living := []string{p.kms.Journal}
	for _, n := range p.nodes.List() {
		for _, g := range n.Plugins() {
			living = append(living, g.Journal)
		}
	}
	return cluster.ForgetJournals(cluster.JournalFile(p.logs, "*"), living)
}

// revive makes a unit run, whatever was done to it.
func revive(ctx context.Context, u cluster.Unit) error {
	if u.Status().Phase == cluster.Paused {
		if err := u.Resume(ctx); err != nil {
			return err
		}
	}
	return u.Start(ctx)
}

// restore gives a node that stays the plugins of a scenario, without faults, and an API server that uses them and is ready.
func (p *controlPlane) restore(ctx context.Context, n *cluster.Node, keyIDs []string) error {
	err := p.restorePlugins(ctx, n, keyIDs)
	if err == nil {
		err = p.reconfigure(ctx, n, keyIDs)
	}
	if err == nil {
		err = n.DropPlugins(ctx, keyIDs)
	}
	if err == nil {
		err = restoreServer(ctx, n.Server)
	}
	return err
}

// reconfigure writes an API server's configuration. One that runs, and looks for a new one often, is to load it: that costs a second, and a start
// two seconds of a processor. Any other is ended, to be started with it.
func (p *controlPlane) reconfigure(ctx context.Context, n *cluster.Node, keyIDs []string) error {
	hash, changed, err := n.Configure(cluster.Plugins(keyIDs...))
	if err != nil || !changed {
		return err
	}
	if p.Traits().EncryptionPoll > 0 && n.Server.Status().Phase == cluster.Running {
		loading, cancel := context.WithTimeout(ctx, reloadGrace)
		defer cancel()
		if n.AwaitConfig(loading, hash) == nil {
			return nil
		}
	}
	return n.Server.Kill(ctx)
}

// restorePlugins gives a node the plugins that the next scenario begins with, running and without faults.
func (p *controlPlane) restorePlugins(ctx context.Context, n *cluster.Node, keyIDs []string) error {
	for _, k := range keyIDs {
		if g := n.Plugin(k); g != nil {
			if err := revive(ctx, g); err != nil { // it may have been started with faults of its own
				return fmt.Errorf("plugin %s: %w", k, err)
			}
		}
		g, err := p.AddPlugin(ctx, n, k)
		if err == nil {
			err = g.Clear(ctx)
		}
		if err != nil {
			return fmt.Errorf("plugin %s: %w", k, err)
		}
	}
	return nil
}

// restoreServer: one that waits for a plugin that was away tries it again ever more rarely, and a new one at once.
func restoreServer(ctx context.Context, s cluster.Server) error {
	if err := revive(ctx, s); err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, cluster.ReadyGrace)
	defer cancel()
	if s.Ready(patience) == nil {
		return nil
	}
	if err := s.Kill(ctx); err != nil {
		return err
	}
	return s.(apiServer).Server.Start(ctx, controlplane.Ready)
}
