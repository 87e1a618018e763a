package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Who uses the load balancer. What the harness itself asks goes the clients' way.
const (
	fromHarness = "harness"
)

// link puts a fault in force on the selected links, or restores them.
func (fs *faults) link(ctx context.Context, a *scenario.Link) error {
	if a.Mode == history.LinkStale {
		return fs.staleList(true)
	}
	fault, err := faultOf(a)
	if err != nil {
		return err
	}
	if a.From == history.RoleLoadBalancer && a.Node == "" && !fault.Breaks() {
		if err := fs.staleList(false); err != nil {
			return err
		}
	}
	switch a.From {
	case cluster.FromAggregator:
		return fs.setLink(ctx, history.Link{From: cluster.FromAggregator, To: history.RoleLoadBalancer}, fault)
	case cluster.FromClient, fromHarness:
		return fs.setLink(ctx, history.Link{From: cluster.FromClient, To: history.RoleLoadBalancer}, fault)
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
func (fs *faults) network(ctx context.Context, nodes []*cluster.Node, f netfault.Fault) error {
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
		if history.ThroughLoadBalancer(fs.e.scenario.Topology.Connectivity) {
			fs.e.record(&history.Link{From: history.RoleReporter, To: history.RoleLoadBalancer, Node: n.Name, State: stateOf(f.Mode)})
		}
	}
	return nil
}

// connected waits, after a cut, until the API server of a node is ready: its etcd member has to find the others again.
func connected(ctx context.Context, n *cluster.Node, f netfault.Fault) error {
	if f.Breaks() || n.Server.Status().Phase != cluster.Running {
		return nil
	}
	if err := n.Server.Ready(ctx); err != nil {
		return fmt.Errorf("connect %s again: %w", n.Name, err)
	}
	return nil
}

func (fs *faults) setLink(ctx context.Context, l history.Link, f netfault.Fault) error {
	if err := fs.e.controlPlane.Network.SetLink(ctx, l, f); err != nil {
		return err
	}
	l.State, l.Delay, l.Direction, l.Rate, l.Loss = stateOf(f.Mode), f.Delay, string(f.Direction), f.Rate, f.Loss
	fs.e.record(&l)
	return nil
}

// faultOf is the fault of a mode: they have the same names, which are the states of a history.
func faultOf(a *scenario.Link) (netfault.Fault, error) {
	f := netfault.Fault{Mode: netfault.Mode(a.State()), Delay: a.Delay.Value(), Direction: netfault.Direction(a.Direction), Rate: a.Rate, Loss: a.Loss}
	return f, f.Validate()
}

func stateOf(m netfault.Mode) string { return cmp.Or(string(m), history.LinkOK) }

// staleList lets the load balancer's list become stale, or ends that.
func (fs *faults) staleList(stale bool) error {
	lister, ok := fs.e.controlPlane.Network.(cluster.StaleLister)
	switch {
	case !stale && !fs.stale:
		return nil
	case !ok:
		return errors.New("a stale list of the load balancer: this backend's list cannot be kept")
	}
	lister.StaleList(stale)
	fs.stale = stale
	l := &history.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer, State: history.LinkOK}
	if stale {
		l.State = history.LinkStale
	}
	fs.e.record(l)
	return nil
}
