package live

import (
	"context"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Who uses the load balancer. What the harness itself asks goes the clients' way.
const (
	FromAggregator = history.RoleAggregator
	FromClient     = "client"
	fromHarness    = "harness"
)

// link puts a fault in force on the selected links, or restores them.
func (fs *faults) link(ctx context.Context, a *scenario.Link) error {
	fault, err := faultOf(a)
	if err != nil {
		return err
	}
	switch a.From {
	case FromAggregator:
		return fs.setLink(ctx, history.Link{From: FromAggregator, To: history.RoleLoadBalancer}, fault)
	case FromClient, fromHarness:
		return fs.setLink(ctx, history.Link{From: FromClient, To: history.RoleLoadBalancer}, fault)
	}
	nodes, err := fs.e.procs.selectNodes(a.Node, true)
	if err != nil {
		return err
	}
	if a.From == history.RoleNode {
		return fs.network(ctx, nodes, fault)
	}
	for _, n := range nodes {
		if err := fs.setLink(ctx, history.Link{From: a.From, To: a.To, Node: n.Name}, fault); err != nil {
			return err
		}
	}
	return nil
}

// network cuts nodes off, or connects them again. What becomes of the node's other links is told as well: who judges a history
// goes by them.
func (fs *faults) network(ctx context.Context, nodes []*Node, f netfault.Fault) error {
	for _, n := range nodes {
		if err := fs.setLink(ctx, history.Link{From: history.RoleNode, To: history.Network, Node: n.Name}, f); err != nil {
			return err
		}
	}
	for _, n := range nodes { // all of them: the first of several to return has no quorum yet
		if err := connected(ctx, n, f); err != nil {
			return err
		}
		fs.e.record(&history.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer, Node: n.Name, State: stateOf(f.Mode)})
		fs.e.record(&history.Link{From: history.RoleAPIServer, To: history.RoleEtcd, Node: n.Name, State: stateOf(f.Mode)})
	}
	return nil
}

// connected waits, after a cut, until the API server of a node is ready: its etcd member has to find the others again.
func connected(ctx context.Context, n *Node, f netfault.Fault) error {
	if f.Breaks() || n.Server.Status().Phase != Running {
		return nil
	}
	if err := n.Server.Ready(ctx); err != nil {
		return fmt.Errorf("connect %s again: %w", n.Name, err)
	}
	return nil
}

func (fs *faults) setLink(ctx context.Context, l history.Link, f netfault.Fault) error {
	if err := fs.e.controlPlane.SetLink(ctx, l, f); err != nil {
		return err
	}
	l.State, l.Delay = stateOf(f.Mode), f.Delay
	fs.e.record(&l)
	return nil
}

func faultOf(a *scenario.Link) (netfault.Fault, error) {
	switch mode := a.Mode; mode {
	case "cut":
		return netfault.Fault{Mode: netfault.Cut}, nil
	case "reset":
		return netfault.Fault{Mode: netfault.Reset}, nil
	case "slow":
		return netfault.Fault{Mode: netfault.Slow, Delay: a.Delay.Value()}, nil
	case "mute":
		return netfault.Fault{Mode: netfault.Mute}, nil
	case "restore":
		return netfault.Fault{}, nil
	default:
		return netfault.Fault{}, fmt.Errorf("mode %q: expected cut, reset, slow, mute or restore", mode)
	}
}

func stateOf(m netfault.Mode) string {
	switch m {
	case netfault.Cut:
		return history.LinkCut
	case netfault.Reset:
		return history.LinkReset
	case netfault.Slow:
		return history.LinkSlow
	case netfault.Mute:
		return history.LinkMute
	default:
		return history.LinkOK
	}
}
