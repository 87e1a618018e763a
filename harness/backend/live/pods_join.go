package live

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
)

// join brings a node up in a cluster with an operator, with its reporter. The node counts from the beginning, before the
// content of its pod is read: otherwise the operator could agree on a key without it, and remove the one that its pod
// begins with.
func (op *operatedParts) join(ctx context.Context, name string) error {
	op.setComing(name, true)
	defer op.setComing(name, false)
	b, err := op.readBeginning(ctx)
	if err != nil {
		return fmt.Errorf("read the newest revisions: %w", err)
	}
	op.e.pods.expect(name, b)
	var n *Node
	configured, err := op.e.pods.configuredOn(ctx, name, b)
	if err == nil {
		n, err = op.e.controlPlane.Topology.AddNode(ctx, name, configured, func(ctx context.Context) error { return op.e.changes.joined(ctx, name) })
	}
	if err != nil {
		op.e.pods.leave(name)
		return err
	}
	if err := op.e.changes.meet(ctx, n, func() error { return op.e.pods.began(ctx, n, b) }); err != nil {
		return err
	}
	op.become(name)
	return op.e.pods.report(ctx, n, b.KeyIDs())
}

// setComing says that a node counts, and that nobody else sees it yet.
func (op *operatedParts) setComing(name string, coming bool) {
	op.e.mu.Lock()
	defer op.e.mu.Unlock()
	if coming {
		op.e.coming[name] = true
		return
	}
	delete(op.e.coming, name)
}

// comes are the nodes that have no pod yet: nothing can be done on them.
func (op *operatedParts) comes() map[string]operand.Node {
	op.e.mu.Lock()
	defer op.e.mu.Unlock()
	out := map[string]operand.Node{}
	for name := range op.e.coming {
		out[name] = operand.Node{Unavailable: true}
	}
	return out
}

// become makes a node that came one of those that there are.
func (op *operatedParts) become(name string) {
	op.e.mu.Lock()
	defer op.e.mu.Unlock()
	delete(op.e.joining, name)
	delete(op.e.coming, name)
}

// expect notes what the pod of a node that comes has, and so what its reporter is to report.
func (p *podStates) expect(name string, b beginning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.of(name)
	for _, g := range b.Plugins {
		pod.plugins[g.KeyID] = g.Config
	}
	pod.sockets, pod.number = b.KeyIDs(), b.pod
}

// began notes what an API server has begun with, and leaves it in the history.
func (p *pods) began(ctx context.Context, n *Node, b beginning) error {
	p.cluster.Installer.Placed(n.Name, b.Configuration)
	if b.File == nil {
		p.e.encrypting.recordConfiguredOn(n.Name)
		return nil
	}
	if err := p.send(n, operand.Revision{Number: b.revision, Configuration: b.Configuration}); err != nil {
		return err
	}
	p.askLoaded(ctx, n) // it is ready, so it answers
	return nil
}

// leave forgets the pod of a node that is gone.
func (p *podStates) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}
