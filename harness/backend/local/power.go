package local

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
)

// NodeUnit implements cluster.Processes: a node, and the pod on it, are no more than their processes here.
func (p *controlPlane) NodeUnit(role string, nodes []*cluster.Node, ready func(*cluster.Target)) cluster.Unit {
	u := p.states.Of(role, nodes, ready)
	if role != history.RoleNode {
		return u
	}
	return &powered{Unit: u, controlPlane: p, nodes: nodes, ready: ready}
}

// RestartContainer implements cluster.Processes: a process is its own container here.
func (p *controlPlane) RestartContainer(ctx context.Context, t cluster.Target, ready func(*cluster.Target)) error {
	if err := t.Kill(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.StartTimeout)
	defer cancel()
	if err := t.Start(ctx); err != nil {
		return err
	}
	ready(&t)
	return nil
}

// powered is nodes with the one etcd that serves all of them: it is without power when the last node is, as a cluster's members
// are, and comes back with the first.
type powered struct {
	cluster.Unit
	controlPlane *controlPlane
	nodes        []*cluster.Node
	ready        func(*cluster.Target)
}

var _ cluster.Unit = (*powered)(nil)

// last says whether no node is left but these.
func (u *powered) last() bool {
	left := map[string]bool{}
	for _, n := range u.controlPlane.nodes.Names() {
		left[n] = !u.controlPlane.states.Ended(history.RoleNode, n)
	}
	for _, n := range u.nodes {
		left[n.Name] = false
	}
	for _, on := range left {
		if on {
			return false
		}
	}
	return true
}

// etcd is the one member, which is there whatever the node.
func (u *powered) etcd() cluster.Target {
	all, _ := u.controlPlane.cp.Storage.Etcd("")
	return all[0]
}

func (u *powered) Kill(ctx context.Context) error {
	var all errgroup.Group
	if u.last() {
		u.controlPlane.MarkDirty(cluster.TaintedEtcd)
		u.controlPlane.etcdPaused.Store(false)
		if u.etcd().Status().Running() {
			u.controlPlane.etcdOff.Store(true)
		}
		all.Go(func() error { return u.etcd().Kill(ctx) })
	}
	all.Go(func() error { return u.Unit.Kill(ctx) })
	return all.Wait()
}

// Start implements cluster.Unit. An etcd that was down when the power went stays down.
func (u *powered) Start(ctx context.Context) error {
	if e := u.etcd(); u.controlPlane.etcdOff.Load() {
		if err := e.Start(ctx); err != nil {
			return err
		}
		u.controlPlane.etcdOff.Store(false)
		u.ready(&e)
	}
	return u.Unit.Start(ctx)
}

// Pause implements cluster.Unit. etcd stands still with the nodes only if all do at once.
func (u *powered) Pause(ctx context.Context) error {
	err := u.Unit.Pause(ctx)
	if e := u.etcd(); u.last() && e.Status().Phase == cluster.Running {
		u.controlPlane.MarkDirty(cluster.TaintedEtcd)
		u.controlPlane.etcdPaused.Store(true)
		err = errors.Join(err, e.Pause(ctx))
	}
	return err
}

func (u *powered) Silence(ctx context.Context) error { return cluster.Silence(ctx, u.Unit) }

func (u *powered) Resume(ctx context.Context) error {
	var err error
	if u.controlPlane.etcdPaused.Swap(false) {
		err = u.etcd().Resume(ctx)
	}
	return errors.Join(err, u.Unit.Resume(ctx))
}
