package sim

import (
	"fmt"
	"maps"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
)

// Nodes that come and go beside an operator. What their pods begin with is the newest revision, whether the operator runs or not: the pod of a
// static API server is made of objects of the API.

// leave forgets the pod of a node, which does not count any more.
func (p *pods) leave(name string) {
	if p != nil {
		delete(p.pods, name)
		delete(p.comes, name)
	}
}

// come has a node count from now on, though its pod is not there yet: whoever waits for all waits for it, and nothing is taken away that it may
// need. ended takes that back.
func (p *pods) come(name string) (ended func()) {
	if p == nil {
		return func() {}
	}
	p.leave(name)
	p.comes[name] = true
	return func() { delete(p.comes, name) }
}

// equip gives a node that is new what its pod begins with, all but its API server and its reporter.
func (p *pods) equip(n *node) error {
	seen, err := p.stored()
	if err != nil {
		return fmt.Errorf("read the newest revisions: %w", err)
	}
	c, plugins := p.e.w.cores.Serve(seen.Observed, 0)
	if err := p.startOn(n, plugins.Plugins); err != nil {
		return err
	}
	for _, g := range plugins.Plugins {
		p.of(n.name).sockets = append(p.of(n.name).sockets, g.KeyID)
	}
	if c.Revision == 0 { // nothing was ever encrypted
		return nil
	}
	file, err := seen.File(c.Revision)
	if err != nil {
		return fmt.Errorf("encryption configuration %d: %w", c.Revision, err)
	}
	return p.writeConfig(n, c.Revision, file)
}

// arrived is when the API server of a node that is new has begun, and the node is one of the cluster: its reporter comes last.
func (p *pods) arrived(n *node) error {
	pod := p.of(n.name)
	p.poll(n, pod)
	if _, configured := pod.newest(); !configured {
		p.e.switching.recordConfiguredOn(n)
	}
	return p.reportOn(n, pod.sockets)
}

// stored are the operator's objects as they are now.
func (p *pods) stored() (exchange.Seen, error) {
	s := &shift{o: p.operator, k: p.e.w.k, caches: newCaches()}
	s.refreshSecrets(nil)
	if err := s.refreshMaps(nil); err != nil {
		return exchange.Seen{}, err
	}
	return s.caches.seen()
}

// met remembers which pods the operator has seen: what it plans is for them.
func (p *pods) met() { p.seen = maps.Clone(p.pods) }

// same is an error if a node's pod is not the one that was seen last: another one has taken over its name.
func (p *pods) same(name string) error {
	if p.seen[name] != p.pods[name] {
		return fmt.Errorf("node %q is another one by now: %w", name, exchange.ErrBehind)
	}
	return nil
}

// coming are the nodes that have no pod yet.
func (p *pods) coming(out map[string]core.Node) {
	for name := range p.comes {
		out[name] = core.Node{Unavailable: true, Since: p.e.w.k.Now()}
	}
}
