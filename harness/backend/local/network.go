package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// network is the links of a control plane and their faults.
type network struct{ p *controlPlane }

var _ live.StaleLister = network{}

func (n network) SetLink(ctx context.Context, l history.Link, f netfault.Fault) error {
	switch {
	case l.From == history.RoleNode && l.To == history.Network: // what a node of several has beyond itself
		return errors.Join(n.setReporterLinks(l.Node, f),
			n.SetLink(ctx, history.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer, Node: l.Node}, f),
			n.SetLink(ctx, history.Link{From: history.RoleAPIServer, To: history.RoleEtcd, Node: l.Node}, f))
	case l.From == history.RoleReporter && n.p.shape.Streams():
		return n.p.streams.set(l.Node, f)
	case l.From == history.RoleReporter:
		return n.p.links.set(l.Node, f)
	case l.To == history.RoleLoadBalancer && n.p.front[l.From] != nil:
		return n.p.front[l.From].Set(f)
	case l.From == history.RoleAPIServer && l.To == history.RoleEtcd:
		s, err := n.p.server(l.Node)
		if err != nil {
			return err
		}
		return s.SetEtcdLink(f)
	case l.From == history.RoleLoadBalancer && l.To == history.RoleAPIServer:
		return n.p.lb.Set(l.Node, f)
	}
	return fmt.Errorf("there is no link from %q to %q here: reporters go to their own API server or to the load balancer, aggregators and clients to the load balancer", l.From, l.To)
}

// setReporterLinks sets what reporters on a node have to the load balancer or to the aggregator. A link to the node's own API server stays.
func (n network) setReporterLinks(node string, f netfault.Fault) error {
	errs := []error{n.p.streams.set(node, f)}
	if history.ThroughLoadBalancer(n.p.shape.Connectivity) {
		errs = append(errs, n.p.links.set(node, f))
	}
	for _, s := range n.p.fleets {
		errs = append(errs, s.links.set(node, f))
	}
	return errors.Join(errs...)
}

func (n network) LoadBalancer() live.Unit { return n.p.frontUnit }

func (n network) StaleList(stale bool) {
	if stale {
		n.p.lb.Freeze()
	} else {
		n.p.lb.Update()
	}
}
