package local

import (
	"context"
	"errors"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Reset implements pool.Plane; what it proves is live.Reset's.
func (p *controlPlane) Reset(ctx context.Context, s *scenario.Scenario) error {
	ctx, cancel := context.WithTimeout(ctx, live.StartTimeout)
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
	return live.Reset(ctx, p.Parts(), s, restore...)
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
func clearPlugins(ctx context.Context, nodes *live.Nodes) error {
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
