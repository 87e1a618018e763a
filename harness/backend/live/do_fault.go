package live

import (
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// faults carries out what breaks or configures something: plugins and their KMS, links, API servers, and refused requests.
type faults struct {
	e        *apiServer
	refusals []history.Refusal // that are in force
	stale    bool              // the load balancer's list of API servers
	wrong    []string          // nodes whose clocks were set, and may be wrong
}

// inject puts a fault in force on the selected plugins.
func (fs *faults) inject(ctx context.Context, a *scenario.Inject) error {
	return fs.eachPlugin(a.Plugin, func(g *cluster.Plugin) error { return g.Control.Inject(ctx, a) })
}

// release ends faults of the selected plugins: those of a name and a method, or all. A plugin that a fault has taken
// down for good is started again.
func (fs *faults) release(ctx context.Context, a *scenario.Release) error {
	var methods []fault.Method
	if a.Method != "" {
		var err error
		if methods, err = fault.ParseMethods(a.Method); err != nil {
			return err
		}
	}
	return fs.eachPlugin(a.Plugin, func(g *cluster.Plugin) error {
		if g.Status().Crashed {
			return fs.e.procs.start(ctx, &g.Target)
		}
		return g.Control.Release(ctx, a.Fault, methods)
	})
}

// setLags sets how long each plugin takes to notice a rotation: one lag for all, or one for each node. A plugin that does not run notices when it
// starts, and so does one that is being stopped.
func (fs *faults) setLags(ctx context.Context, keyID string, lag scenario.Lag) error {
	return fs.eachPlugin(scenario.Selector{KeyID: keyID}, func(g *cluster.Plugin) error {
		return whileRunning(ctx, func() bool { return g.Status().Running() }, func() error { return g.Control.SetNoticeLag(ctx, lag.Of(g.Node)) })
	})
}

// whileRunning asks a plugin until it does as it is asked, or has ended. It may be stopped in that instant, or paused, and then hang up on what it
// had accepted before. All tries take longer than it may take to end.
func whileRunning(ctx context.Context, running func() bool, ask func() error) error {
	const tries, between = 100, 50 * time.Millisecond
	for try := 1; running(); try++ {
		if err := ask(); err == nil || try == tries || poll.Pause(ctx, between) != nil {
			return err
		}
	}
	return nil
}

func (fs *faults) eachPlugin(s scenario.Selector, do func(*cluster.Plugin) error) error {
	nodes, err := fs.e.procs.selectNodes(s.Node, true)
	if err != nil {
		return err
	}
	var plugins []*cluster.Plugin
	for _, n := range nodes {
		for _, g := range n.PluginsOf(s.Pod) {
			if s.KeyID == "" || s.KeyID == g.KeyID {
				plugins = append(plugins, g)
			}
		}
	}
	if len(plugins) == 0 {
		return fmt.Errorf("there is no plugin with keyID %q on node %q", s.KeyID, s.Node)
	}
	return cluster.Parallel(plugins, func(g *cluster.Plugin) error {
		if err := do(g); err != nil {
			return fmt.Errorf("plugin %s/%s: %w", g.Node, g.KeyID, err)
		}
		return nil
	})
}
