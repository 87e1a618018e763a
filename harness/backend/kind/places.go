package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// places are the plugins in the pods of an API server: which is in which of their containers. It is safe for concurrent use.
type places struct {
	// journals are those of hold, which are read before a container changes hands: its lines are about who was in it.
	journals *tail.Set

	mu  sync.Mutex
	all map[string]place // by node
}

// place is what the pod of a node has for plugins.
type place struct {
	files podFiles
	slots []*slot
	// make makes the plugin of a keyID in the container of a unit.
	make func(keyID, unit string) (*live.Plugin, error)
}

// put makes the containers of a node's pod known.
func (p *places) put(node string, at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]place{}
	}
	p.all[node] = at
}

// drop forgets those of a node that is gone.
func (p *places) drop(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, node)
}

// take gives the plugin of a keyID a container, and makes it one of its node's. Whatever ran there before has ended, and nobody needs it.
func (p *places) take(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := n.Plugin(keyID); g != nil {
		return g, nil
	}
	at := p.all[n.Name]
	free := freeSlot(at.slots, n, keyID)
	if free == nil {
		return nil, fmt.Errorf("plugin %s/%s: each of the %d containers that the pod has for plugins is taken, by %s: one has to end before the next can start", n.Name, keyID, len(at.slots), strings.Join(takenBy(at.slots), ", "))
	}
	g, err := at.make(keyID, free.unit)
	if err != nil {
		return nil, err
	}
	if free.plugin() != nil {
		if err := errors.Join(free.plugin().Stop(ctx), p.journals.Poll()); err != nil {
			return nil, fmt.Errorf("plugin %s/%s takes the place of %s: %w", n.Name, keyID, free.plugin().KeyID, err)
		}
	}
	free.is.Store(g)
	n.AddPlugin(g)
	return g, nil
}

// start starts the plugin of a keyID, in a container of its own.
func (p *places) start(ctx context.Context, n *live.Node, keyID string) (*live.Plugin, error) {
	g, err := p.take(ctx, n, keyID)
	if err != nil {
		return nil, err
	}
	return g, g.Start(ctx)
}

// reset starts the plugins that a scenario begins with, without faults, and ends the others.
func (p *places) reset(ctx context.Context, n *live.Node, keyIDs []string) error {
	p.mu.Lock()
	at := p.all[n.Name]
	p.mu.Unlock()
	var errs []error
	for _, s := range at.slots {
		if g := s.plugin(); g != nil && !(s.usedBy(n) && slices.Contains(keyIDs, g.KeyID)) {
			errs = append(errs, g.Stop(ctx))
			if s.usedBy(n) {
				n.RemovePlugin(g.KeyID)
			}
		}
	}
	errs = append(errs, forgetJournals(at.files, n.Plugins()))
	for _, k := range keyIDs {
		g, err := p.start(ctx, n, k)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, g.Clear(ctx))
	}
	return errors.Join(errs...)
}
