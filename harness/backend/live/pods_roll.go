package live

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/tail"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// replace replaces the pod of a node by one of a revision, unless it has that one, and returns when its API server has loaded its file.
func (p *pods) replace(ctx context.Context, n *cluster.Node, r operand.Revision) error {
	if p.late(n.Name, r) {
		return operand.ErrUnfinished
	}
	p.mu.Lock()
	has := p.of(n.Name).number
	p.mu.Unlock()
	if has != r.Number {
		if err := p.roll(ctx, n, r); err != nil {
			return err
		}
	}
	p.mu.Lock()
	waiting := slices.Sorted(maps.Values(p.of(n.Name).waiting))
	p.mu.Unlock()
	if len(waiting) > 0 {
		return fmt.Errorf("plugins cannot start: %v", waiting)
	}
	if !p.askLoaded(ctx, n) || !p.loads(n) {
		return fmt.Errorf("%s has not loaded it yet", n.Name) // the others wait
	}
	return nil
}

// roll replaces the pod of a node. It is not given up when the environment ends: a pod that is half made could not be
// used by the next scenario.
func (p *pods) roll(ctx context.Context, n *cluster.Node, r operand.Revision) error {
	ctx = context.WithoutCancel(ctx)
	next := cluster.PodRevision{Number: r.Number, Images: map[string]string{}, Change: func(context.Context) error { return p.changeFiles(n, r) }, Ready: p.e.changes.recordReady}
	named := operand.NamedImages(p.e.scenario)
	for _, id := range slices.Sorted(slices.Values(r.KeyIDs())) {
		called := revision.SocketName(id)
		g, _ := r.Of(id)
		if err := p.logIns.introduce(ctx, n.Name, called, g); err != nil {
			return err
		}
		next.Plugins = append(next.Plugins, called)
		if slices.Contains(named, g.Image) {
			next.Images[called] = g.Image
		}
	}
	p.e.procs.recordStopping(n.ServerTarget())
	made, err := p.roller.Roll(ctx, n, next)
	if err != nil {
		return err
	}
	waiting := map[uint64]string{}
	for _, w := range made.Waiting {
		p.e.record(&history.Container{Node: n.Name, Namespace: made.Namespace, Pod: made.Name, Name: w.Name, State: history.ContainerWaiting, Revision: r.Number, Detail: w.Reason})
		if id, err := revision.ParseKeyID(w.Plugin); err == nil {
			waiting[id] = w.Reason
		}
	}
	p.mu.Lock()
	pod := p.of(n.Name)
	pod.waiting, pod.number = waiting, r.Number
	p.mu.Unlock()
	if len(waiting) > 0 {
		return nil
	}
	p.e.record(&history.Container{Node: n.Name, Namespace: made.Namespace, Pod: made.Name, State: history.PodRevised, Revision: r.Number, Detail: made.Describe()})
	return p.e.procs.start(ctx, n.Reporter())
}

// changeFiles notes what the pod of a node has from now on, and gives its API server its file.
func (p *pods) changeFiles(n *cluster.Node, r operand.Revision) error {
	p.mu.Lock()
	pod := p.of(n.Name)
	clear(pod.plugins)
	for _, g := range r.Plugins {
		pod.plugins[g.KeyID] = g.Config
	}
	pod.sockets = r.KeyIDs()
	p.mu.Unlock()
	p.toldSockets(n.Name)
	for _, g := range n.Plugins() {
		if err := p.e.recorder.FollowPlugin(g, tail.FromStart); err != nil {
			return err
		}
	}
	if r.File == nil {
		return nil
	}
	return p.send(n, r)
}
