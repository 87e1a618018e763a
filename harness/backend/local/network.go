package local

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

var _ cluster.StaleLister = (*controlPlane)(nil)

// SetLink implements cluster.Network.
func (p *controlPlane) SetLink(ctx context.Context, l history.Link, f netfault.Fault) error {
	switch {
	case l.From == history.RoleNode && l.To == history.Network: // what a node of several has beyond itself
		return errors.Join(p.setReporterLinks(l.Node, f),
			p.SetLink(ctx, history.Link{From: history.RoleLoadBalancer, To: history.RoleAPIServer, Node: l.Node}, f),
			p.SetLink(ctx, history.Link{From: history.RoleAPIServer, To: history.RoleEtcd, Node: l.Node}, f))
	case l.From == history.RoleReporter && p.shape.Streams():
		return p.streams.set(l.Node, f)
	case l.From == history.RoleReporter:
		return p.links.set(l.Node, f)
	case l.To == history.RoleLoadBalancer && p.front[l.From] != nil:
		return p.front[l.From].Set(f)
	case l.From == history.RoleAPIServer && l.To == history.RoleEtcd:
		s, err := p.server(l.Node)
		if err != nil {
			return err
		}
		return s.SetEtcdLink(f)
	case l.From == history.RoleLoadBalancer && l.To == history.RoleAPIServer:
		return p.lb.Set(l.Node, f)
	}
	return fmt.Errorf("there is no link from %q to %q here: reporters go to their own API server or to the load balancer, aggregators and clients to the load balancer", l.From, l.To)
}

// setReporterLinks sets what reporters on a node have to the load balancer or to the aggregator. A link to the node's own API server stays.
func (p *controlPlane) setReporterLinks(node string, f netfault.Fault) error {
	errs := []error{p.streams.set(node, f)}
	if history.ThroughLoadBalancer(p.shape.Connectivity) {
		errs = append(errs, p.links.set(node, f))
	}
	for _, s := range p.fleets {
		errs = append(errs, s.links.set(node, f))
	}
	return errors.Join(errs...)
}

func (p *controlPlane) LoadBalancer() cluster.Unit { return p.frontUnit }

func (p *controlPlane) StaleList(stale bool) {
	if stale {
		p.lb.Freeze()
	} else {
		p.lb.Update()
	}
}

// links are those of programs on nodes. The links of a node fail together. The zero value is empty; it is safe for concurrent use.
type links struct {
	mu sync.Mutex
	of map[string][]*netfault.Link // by node
}

func (ls *links) add(node string, l *netfault.Link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.of == nil {
		ls.of = map[string][]*netfault.Link{}
	}
	ls.of[node] = append(ls.of[node], l)
}

func (ls *links) set(node string, f netfault.Fault) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var errs []error
	for _, l := range ls.of[node] {
		errs = append(errs, l.Set(f))
	}
	return errors.Join(errs...)
}

// drop closes the links of a node, and returns them.
func (ls *links) drop(node string) (dropped []*netfault.Link, err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.of[node] {
		err = errors.Join(err, l.Close())
	}
	dropped = ls.of[node]
	delete(ls.of, node)
	return dropped, err
}

func (ls *links) close() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var errs []error
	for _, of := range ls.of {
		for _, l := range of {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// streams are where the replicas of an aggregator serve the streams of reporters, and the links of nodes to them: one to each, which fail together. The
// zero value is for reporters that do not stream.
type streams struct {
	links
	ground    Ground
	addresses []string // by replica
}

// open gets the addresses.
func (s *streams) open(on Ground, name string) error {
	s.ground = on
	for i := range scenario.MaxAggregators {
		a, err := on.Port(fmt.Sprintf("aggregator-%d%s", i+1, name))
		if err != nil {
			return fmt.Errorf("streams of an aggregator: %w", err)
		}
		s.addresses = append(s.addresses, a)
	}
	return nil
}

// address is that of the i-th replica, from 1; empty where reporters do not stream.
func (s *streams) address(i int) string {
	if len(s.addresses) == 0 {
		return ""
	}
	return s.addresses[i-1]
}

// join makes the links of a node, and gives their addresses.
func (s *streams) join(node string) (addresses []string, err error) {
	for i, to := range s.addresses {
		name := fmt.Sprintf("reporter of %s to aggregator %d", node, i+1)
		link, err := netfault.NewLink(s.ground.LinkHost(name), name, to)
		if err != nil {
			return nil, err
		}
		s.add(node, link)
		addresses = append(addresses, link.Addr())
	}
	return addresses, nil
}
