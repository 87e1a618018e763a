package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Reset implements pool.Plane; what it proves is live.Reset's.
func (p *controlPlane) Reset(ctx context.Context, s *scenario.Scenario) error {
	ctx, cancel := context.WithTimeout(ctx, live.StartTimeout)
	defer cancel()
	used, parts := p.used, p.Parts()
	if used {
		if err := p.repairs.run(ctx, live.KeyIDs(s)); err != nil {
			return fmt.Errorf("repair: %w", err)
		}
	}
	p.used = true
	if err := p.profile.Become(ctx, s.Topology.Profile, &p.nodes); err != nil {
		return err
	}
	if err := p.repairs.install(ctx, s.Operator); err != nil {
		return err
	}
	if err := live.Reset(ctx, parts, s.Operator); err != nil {
		return err
	}
	for i, f := range p.fleets {
		if err := f.reset(ctx, s, used, parts, parts.APIServers[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// clearLinks ends every fault on the ways between programs.
func (r repair) clearLinks(ctx context.Context) error {
	r.p.lb.Update()
	errs := []error{r.p.frontUnit.Start(ctx)}
	for _, s := range r.p.servers() {
		name := s.Info().Name
		errs = append(errs, r.p.link(name).Set(netfault.Fault{}), s.SetEtcdLink(netfault.Fault{}), r.p.lb.Set(name, netfault.Fault{}))
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

// install installs what an operator needs, once.
func (r repair) install(ctx context.Context, operator string) error {
	objects, err := r.p.Traits().Missing(operator, r.p.shape.crds, r.p.installed)
	if err != nil || len(objects) == 0 {
		return err
	}
	if r.p.manifest != nil {
		for _, o := range objects {
			r.p.manifest(o)
		}
	}
	if err := r.p.cp.Servers.Install(ctx, objects...); err != nil {
		return err
	}
	r.p.installed[live.OperatorFlag(operator)] = true
	return nil
}
