package live

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kmsharness/kmsharness/harness/scenario"
)

// inject puts a fault in force on the selected plugins.
func (e *Environment) inject(ctx context.Context, a *scenario.Inject) error {
	return e.eachPlugin(a.Plugin, func(g *Plugin) error { return g.control.inject(ctx, a.Fault, a.Method, a.Params) })
}

// release ends faults of the selected plugins: those of a name and a method, or all. A plugin that a fault has taken
// down for good is started again.
func (e *Environment) release(ctx context.Context, a *scenario.Release) error {
	return e.eachPlugin(a.Plugin, func(g *Plugin) error {
		if g.Status().Crashed {
			return e.start(ctx, &g.Target)
		}
		return g.control.release(ctx, a.Fault, a.Method)
	})
}

// setLags says how long each plugin takes to notice a rotation: one lag for all, or one for each node.
func (e *Environment) setLags(ctx context.Context, lag scenario.Lag) error {
	return e.eachPlugin(scenario.Selector{}, func(g *Plugin) error { return g.control.SetNoticeLag(ctx, lag.Of(g.Node)) })
}

func (e *Environment) eachPlugin(s scenario.Selector, do func(*Plugin) error) error {
	nodes, err := e.selectNodes(s.Node, true)
	if err != nil {
		return err
	}
	var plugins []*Plugin
	for _, n := range nodes {
		for _, g := range n.Plugins() {
			if s.KeyID == "" || s.KeyID == g.KeyID {
				plugins = append(plugins, g)
			}
		}
	}
	if len(plugins) == 0 {
		return fmt.Errorf("there is no plugin with keyID %q on node %q", s.KeyID, s.Node)
	}
	errs := make([]error, len(plugins))
	var all sync.WaitGroup
	for i, g := range plugins {
		all.Go(func() {
			if err := do(g); err != nil {
				errs[i] = fmt.Errorf("plugin %s/%s: %w", g.Node, g.KeyID, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
