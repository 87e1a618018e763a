package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// fromAggregated is the link of all further API servers to the load balancer.
const fromAggregated = history.RoleAggregatedAPIServer

// aggregatedServers is an API server beside kube-apiserver: a sample-apiserver for each node, as the pods of a Deployment, each with a folder for
// its sockets as their emptyDir, and a Service in front of all.
type aggregatedServers struct {
	*controlPlane
	live.Stub
	dir     string // short: sockets are below it
	program string
	lb      *netfault.LoadBalancer
	nodes   live.Nodes
	streams *streams // nil where reporters do not stream
	profile live.Profile
	states  live.NodeStates

	mu    sync.Mutex
	links map[string]*netfault.Link // from each node's reporter to the load balancer
}

// makeFleets makes the further API servers of a shape. Nothing of them runs yet.
func (p *controlPlane) makeFleets(apiServers []string, program string) error {
	for _, name := range apiServers {
		s, err := live.StubOf(name)
		if err != nil {
			return err
		}
		f := &aggregatedServers{controlPlane: p, Stub: s, dir: filepath.Join(p.dir, name), program: program, links: map[string]*netfault.Link{}}
		if f.lb, err = netfault.NewLoadBalancer(p.LinkHost("service of "+name), "service of "+name, p.Traits().Timing.DialTimeout()); err != nil {
			return err
		}
		if p.shape.Streams() {
			if f.streams, err = newStreams(p.Ground, "-"+name); err != nil {
				return err
			}
		}
		p.fleets = append(p.fleets, f)
	}
	if len(p.fleets) == 0 {
		return nil
	}
	link, err := p.frontUnit.join(fromAggregated, p.lb.Addr())
	if err != nil {
		return err
	}
	p.front[fromAggregated] = link
	return nil
}

func (f *aggregatedServers) link(node string) *netfault.Link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.links[node]
}

// NodeUnit is of its pods only: nodes are the control plane's.
func (f *aggregatedServers) NodeUnit(role string, nodes []*live.Node, ready func(*live.Target)) live.Unit {
	return f.states.Of(role, nodes, ready)
}

func (f *aggregatedServers) AggregatorPlace(i int) live.Place {
	at := f.controlPlane.AggregatorPlace(i)
	at.Dir, at.SeenDir, at.StreamAddress = f.dir, f.dir, f.streams.address(i)
	return at
}

// OperatorPlace is beside the aggregator.
func (f *aggregatedServers) OperatorPlace() live.Place { return f.AggregatorPlace(1) }

// start brings up the API servers behind their Service, and makes the kube-apiservers pass requests on. Those run.
func (f *aggregatedServers) start(ctx context.Context) error {
	for _, n := range f.nodes.List() {
		s := n.Server.(apiServer)
		if err := f.lb.Add(n.Name, s.Info().Addr); err != nil {
			return err
		}
		if err := s.Server.Start(ctx, controlplane.Started); err != nil {
			return err
		}
	}
	for _, n := range f.nodes.List() {
		if err := n.Server.Ready(ctx); err != nil {
			return fmt.Errorf("%s of %s: %w", f.Stub.APIServer, n.Name, err)
		}
	}
	objects, err := f.cp.Authority.Manifests(controlplane.APIService{Group: live.Wardle, Version: f.Version, Namespace: f.Namespace, Name: f.Service, Addr: f.lb.Addr()})
	if err != nil {
		return err
	}
	return f.cp.Servers.Install(ctx, objects...)
}

// close is for one that was not started to its end as well. The processes are gone.
func (f *aggregatedServers) close() error {
	for _, n := range f.nodes.List() {
		n.Close()
	}
	errs := []error{f.lb.Close()}
	for _, l := range f.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
