package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// fromAggregated is the link of all further API servers to the load balancer.
const fromAggregated = history.RoleAggregatedAPIServer

// aggregatedServers is an API server beside kube-apiserver: a sample-apiserver for each node, as the pods of a Deployment, each with a folder for
// its sockets as their emptyDir, and a Service in front of all.
type aggregatedServers struct {
	*controlPlane
	apiServers
	cluster.Stub
	program string
	lb      *netfault.LoadBalancer
	seconds []*aggregatedServers // second pods
}

// makeFleets makes the further API servers of a shape. Nothing of them runs yet.
func (p *controlPlane) makeFleets(names []string, program string) error {
	for _, name := range names {
		s, err := cluster.StubOf(name)
		if err != nil {
			return err
		}
		f := &aggregatedServers{controlPlane: p, Stub: s, program: program}
		f.apiServers.of, f.apiServers.name, f.apiServers.dir, f.resources = p, name, filepath.Join(p.dir, name), []string{cluster.Flunders}
		if f.lb, err = netfault.NewLoadBalancer(p.LinkHost("service of "+name), "service of "+name, p.Traits().Timing.DialTimeout()); err != nil {
			return err
		}
		if p.shape.Streams() {
			if err := f.streams.open(p.Ground, "-"+name); err != nil {
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

// NodeUnit is of its pods only: nodes are the control plane's.
func (f *aggregatedServers) NodeUnit(role string, nodes []*cluster.Node, ready func(*cluster.Target)) cluster.Unit {
	return f.states.Of(role, nodes, ready)
}

// makeNode makes the pod beside a node.
func (f *aggregatedServers) makeNode(ctx context.Context, beside *cluster.Node, told cluster.Encryption) error {
	n, err := f.makePod(ctx, beside, told)
	beside.Alongside = append(beside.Alongside, n)
	return err
}

// AddPod implements cluster.PodAdder. The pod has sockets, plugins and an API server of its own, behind the same Service.
func (f *aggregatedServers) AddPod(ctx context.Context, first *cluster.Node, told cluster.Encryption) (*cluster.Node, error) {
	f.MarkDirty("an API server has a second pod on a node")
	g := &aggregatedServers{controlPlane: f.controlPlane, Stub: f.Stub, program: f.program, lb: f.lb}
	g.apiServers.of, g.apiServers.name, g.apiServers.dir, g.pod, g.resources = f.controlPlane, f.apiServers.name, f.apiServers.dir+"-2", scenario.PodSecond, f.resources
	g.streams.addresses = f.apiServers.streams.addresses
	f.seconds = append(f.seconds, g)
	if err := os.MkdirAll(filepath.Join(f.logs, g.pod), 0o700); err != nil {
		return nil, err
	}
	n, err := g.makePod(ctx, first, told)
	if err != nil {
		return nil, err
	}
	s := n.Server.(apiServer)
	if err := s.Server.Start(ctx, controlplane.Ready); err != nil {
		return nil, err
	}
	return n, g.lb.Add(s.Info().Name, s.Info().Addr)
}

// RemovePod implements cluster.PodAdder.
func (f *aggregatedServers) RemovePod(ctx context.Context, n *cluster.Node) error {
	return errors.Join(f.lb.Remove(n.Server.(apiServer).Info().Name), n.Server.Stop(ctx), n.EndPlugins(ctx))
}

// makePod makes a pod: its API server, which is not started, and its plugins, which are.
func (f *aggregatedServers) makePod(ctx context.Context, beside *cluster.Node, told cluster.Encryption) (n *cluster.Node, err error) {
	n = &cluster.Node{Name: beside.Name}
	if n.Admin, err = cluster.NewAdmin(f.cp.Authority, beside.URL); err != nil {
		return n, err
	}
	return n, f.addNode(ctx, n, told, func(e controlplane.Encryption) (Server, error) {
		return f.cp.Servers.AddAggregated(controlplane.AggregatedSpec{
			Kind: f.Stub.APIServer, Name: f.podName(n.Name), Program: f.program, Server: "https://" + f.front[fromAggregated].Addr(), EtcdPrefix: f.Prefix(),
			ServiceNamespace: f.Namespace, ServiceName: f.Service, Encryption: e,
		})
	}, func(Server) (*netfault.Link, error) {
		return f.frontUnit.join(f.Stub.APIServer+" reporter of "+f.podName(n.Name), f.controlPlane.lb.Addr())
	})
}

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
	objects, err := f.cp.Authority.Manifests(controlplane.APIService{Group: cluster.Wardle, Version: f.Version, Namespace: f.Namespace, Name: f.Service, Addr: f.lb.Addr()})
	if err != nil {
		return err
	}
	return f.Traits().Install(ctx, f.cp.Authority, &f.controlPlane.nodes, objects...)
}
