package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// links are the faults in force between containers.
type links struct {
	mu     sync.Mutex
	broken map[history.Link][]*breakage // by link, without its state
}

// breakage is what was done to one way of a link: rules in the order in which they were put in, and the proxy that they
// lead to, if any.
type breakage struct {
	way   way
	rules [][]string
	proxy bool
}

// SetLink implements live.Plane.
func (p *plane) SetLink(ctx context.Context, l history.Link, f netfault.Fault) error {
	if l.From == fromClient {
		return p.front.Set(f)
	}
	if err := f.Validate(); err != nil {
		return err
	}
	p.links.mu.Lock()
	defer p.links.mu.Unlock()
	key := history.Link{From: l.From, To: l.To, Node: l.Node}
	if err := p.mend(ctx, key); err != nil || !f.Breaks() {
		return err
	}
	ways, err := p.waysOf(key)
	if err != nil {
		return err
	}
	broken := make([]*breakage, len(ways))
	all, breaking := errgroup.WithContext(ctx)
	for i, w := range ways {
		broken[i] = &breakage{way: w}
		all.Go(func() error { return p.breakWay(breaking, broken[i], f) })
	}
	p.links.broken[key] = broken
	return all.Wait()
}

// breakWay leads new connections to a proxy, where the fault needs one, before it sees to those that exist. Every step is noted
// before it is taken: one that was interrupted may have been, and what cannot be undone ends the cluster.
func (p *plane) breakWay(ctx context.Context, b *breakage, f netfault.Fault) error {
	var port string
	if needsProxy(f) {
		var err error
		b.proxy = true
		if port, err = p.startProxy(ctx, b.way, f); err != nil {
			return err
		}
	}
	for _, rule := range b.way.rules(f, port) {
		b.rules = append(b.rules, rule)
		if err := b.way.change(ctx, "-I", rule); err != nil {
			return err
		}
	}
	return nil
}

// mend undoes the faults of a link; p.links.mu is held.
func (p *plane) mend(ctx context.Context, key history.Link) error {
	var all errgroup.Group
	for _, b := range p.links.broken[key] {
		if p.container(b.way.node) != b.way.container { // the node has gone, and all that was in it
			continue
		}
		all.Go(func() error { return p.mendWay(ctx, b) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	delete(p.links.broken, key)
	return nil
}

// mendWay ends the proxy last: whom it resets must come through without it.
func (p *plane) mendWay(ctx context.Context, b *breakage) error {
	for len(b.rules) > 0 {
		last := len(b.rules) - 1
		if err := b.way.change(ctx, "-D", b.rules[last]); err != nil {
			return err
		}
		b.rules = b.rules[:last]
	}
	if !b.proxy {
		return nil
	}
	if err := p.stopProxy(ctx, b.way); err != nil {
		return err
	}
	b.proxy = false
	return nil
}

// change puts a rule in or takes it out: the table, the chain, the rest.
func (w way) change(ctx context.Context, verb string, rule []string) error {
	words := slices.Concat([]string{"iptables", "-w", "-t", rule[0], verb}, rule[1:])
	if _, err := inside(ctx, w.container, nil, words...); err != nil {
		return fmt.Errorf("packet filter of %s, %s: %w", w.node, strings.Join(rule, " "), err)
	}
	return nil
}

// restoreLinks ends every fault of a link.
func (p *plane) restoreLinks(ctx context.Context) error {
	errs := []error{p.front.Set(netfault.Fault{})}
	p.links.mu.Lock()
	defer p.links.mu.Unlock()
	for key := range p.links.broken {
		errs = append(errs, p.mend(ctx, key))
	}
	return errors.Join(errs...)
}
