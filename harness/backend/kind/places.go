package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// places are the plugins that the pods of an API server have, whether a scenario uses them or not. The zero value is empty. It is safe for
// concurrent use.
type places struct {
	mu  sync.Mutex
	all map[string]map[string]*live.Plugin // by node and keyID
}

// put makes plugins those of a node's pod.
func (p *places) put(node string, plugins map[string]*live.Plugin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]map[string]*live.Plugin{}
	}
	p.all[node] = plugins
}

// drop forgets those of a node that is gone.
func (p *places) drop(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, node)
}

// get is that of a node's pod; nil if there is none.
func (p *places) get(node, keyID string) *live.Plugin {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[node][keyID]
}

// start makes a plugin one that is used, and starts it.
func (p *places) start(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	g := p.get(n.Name, keyID)
	if g == nil {
		return nil, fmt.Errorf("plugin %s/%s: the pods of this backend have keyIDs %v", n.Name, keyID, pluginKeyIDs())
	}
	n.AddPlugin(g)
	return g, g.Start(ctx)
}

// reset starts the plugins that a scenario begins with, without faults, and holds the others.
func (p *places) reset(ctx context.Context, n *live.Node, keyIDs []string) error {
	var errs []error
	for _, k := range pluginKeyIDs() {
		if !slices.Contains(keyIDs, k) {
			n.RemovePlugin(k)
			g := p.get(n.Name, k)
			errs = append(errs, g.Stop(ctx), forget(g.Journal))
			continue
		}
		g, err := p.start(ctx, n, k)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, g.Clear(ctx))
	}
	return errors.Join(errs...)
}
