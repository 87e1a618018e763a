package local

import (
	"context"
	"fmt"
	"path/filepath"

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
	apiServers
	live.Stub
	program string
	lb      *netfault.LoadBalancer
}

// makeFleets makes the further API servers of a shape. Nothing of them runs yet.
func (p *controlPlane) makeFleets(names []string, program string) error {
	for _, name := range names {
		s, err := live.StubOf(name)
		if err != nil {
			return err
		}
		f := &aggregatedServers{controlPlane: p, Stub: s, program: program}
		f.apiServers.of, f.apiServers.name, f.apiServers.dir, f.resources = p, name, filepath.Join(p.dir, name), []string{live.Flunders}
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
func (f *aggregatedServers) NodeUnit(role string, nodes []*live.Node, ready func(*live.Target)) live.Unit {
	return f.states.Of(role, nodes, ready)
}

// makeNode makes the pod beside a node: its API server, which is not started, and its plugins, which are.
func (f *aggregatedServers) makeNode(ctx context.Context, beside *live.Node, told live.Encryption) (err error) {
	n := &live.Node{Name: beside.Name}
	if n.Admin, err = live.NewAdmin(f.cp.Authority, beside.URL); err != nil {
		return err
	}
	err = f.addNode(ctx, n, told, func(e controlplane.Encryption) (Server, error) {
		return f.cp.Servers.AddAggregated(controlplane.AggregatedSpec{
			Kind: f.Stub.APIServer, Name: n.Name, Program: f.program, Server: "https://" + f.front[fromAggregated].Addr(), EtcdPrefix: f.Prefix(),
			ServiceNamespace: f.Namespace, ServiceName: f.Service, Encryption: e,
		})
	}, func(Server) (*netfault.Link, error) {
		return f.frontUnit.join(f.Stub.APIServer+" reporter of "+n.Name, f.controlPlane.lb.Addr())
	})
	beside.Alongside = append(beside.Alongside, n)
	return err
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
	objects, err := f.cp.Authority.Manifests(controlplane.APIService{Group: live.Wardle, Version: f.Version, Namespace: f.Namespace, Name: f.Service, Addr: f.lb.Addr()})
	if err != nil {
		return err
	}
	return f.Traits().Install(ctx, f.cp.Authority, &f.controlPlane.nodes, objects...)
}
