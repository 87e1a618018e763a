package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/backend/pool"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Reset implements pool.Plane; what it proves is live.Reset's.
func (p *plane) Reset(ctx context.Context, s *scenario.Scenario) error {
	plan, err := pool.PlanRepair(nodeNames(p.shape.nodes), p.nodes.Names(), p.leaves)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout+time.Duration(len(plan.Out)+len(plan.In))*joinTimeout)
	defer cancel()
	if err := errors.Join(p.restoreLinks(ctx), p.lb.Start(ctx), p.kms.Clear(ctx)); err != nil {
		return err
	}
	keyIDs := live.KeyIDs(s)
	err = p.group(ctx, func(ctx context.Context, n *live.Node) error {
		if slices.Contains(plan.Out, n.Name) {
			return nil
		}
		return p.resetNode(ctx, n, keyIDs)
	})
	if err != nil {
		return err
	}
	if err := p.takeOut(ctx, plan.Out); err != nil {
		return err
	}
	if err := p.bringIn(ctx, plan.In, keyIDs); err != nil {
		return err
	}
	if err := p.profile.Become(ctx, s.Topology.Profile, &p.nodes); err != nil {
		return err
	}
	if err := p.seatAggregators(ctx); err != nil {
		return err
	}
	if err := p.install(ctx, s.Operator); err != nil {
		return err
	}
	if err := live.Reset(ctx, p, s.Operator); err != nil {
		return err
	}
	for _, f := range p.fleets {
		if err := f.reset(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// resetNode starts the plugins that the scenario begins with, holds the others, and gives the API server its configuration.
// One whose configuration has changed is started again, which is sooner than a stock API server looks at it.
func (p *plane) resetNode(ctx context.Context, n *live.Node, keyIDs []string) error {
	if err := p.plugins.reset(ctx, n, keyIDs); err != nil {
		return err
	}
	if _, err := inside(ctx, p.container(n.Name), nil, "pkill", "-CONT", "-x", "etcd"); err != nil { // a scenario may have left it paused
		return err
	}
	return n.Server.(*server).reset(ctx, keyIDs)
}

// reset gives an API server the configuration that a scenario begins with.
func (s *server) reset(ctx context.Context, keyIDs []string) error {
	before, _ := os.ReadFile(s.file(encryptionFile)) // what cannot be read has changed
	if _, err := s.SetEncryption(live.Plugins(keyIDs...)); err != nil {
		return err
	}
	after, err := os.ReadFile(s.file(encryptionFile))
	if err != nil {
		return err
	}
	if string(before) != string(after) {
		if err := s.Kill(ctx); err != nil {
			return err
		}
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	return s.Ready(ctx)
}

// install installs what an operator needs, once.
func (p *plane) install(ctx context.Context, operator string) error {
	objects, err := live.Missing(operator, p.shape.crds, p.installed)
	if err != nil || len(objects) == 0 {
		return err
	}
	var configs []*rest.Config
	for _, n := range p.nodes.List() {
		config, err := p.authority.AdminConfig(n.Server.URL())
		if err != nil {
			return err
		}
		configs = append(configs, config)
	}
	if err := controlplane.Install(ctx, configs, objects...); err != nil {
		return fmt.Errorf("manifests: %w", err)
	}
	p.installed[live.OperatorFlag(operator)] = true
	return nil
}

// group runs f for every node at the same time.
func (p *plane) group(ctx context.Context, f func(context.Context, *live.Node) error) error {
	nodes := p.nodes.List()
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return eachOf(ctx, names, func(ctx context.Context, i int) error { return f(ctx, nodes[i]) })
}

// eachOf does something for every name at the same time.
func eachOf(ctx context.Context, names []string, do func(ctx context.Context, i int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		all.Go(func() error {
			if err := do(ctx, i); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			return nil
		})
	}
	return all.Wait()
}
