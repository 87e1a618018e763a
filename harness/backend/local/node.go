package local

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// makeNode makes a node with its plugins and API server; it starts the plugins only.
func (p *controlPlane) makeNode(ctx context.Context, name string, told cluster.Encryption) (*cluster.Node, error) {
	n := &cluster.Node{Name: name}
	err := p.addNode(ctx, n, told, func(e controlplane.Encryption) (Server, error) {
		return p.cp.Servers.Add(controlplane.ServerSpec{Name: name, Encryption: e, Release: p.shape.KubernetesOf(name)})
	}, func(s Server) (*netfault.Link, error) { return p.reporterLink(name, s.Info().Addr) })
	if err == nil && told.File != nil {
		_, err = n.Server.RollOut(told.File)
	}
	if err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	return n, nil
}

// inClusterEnv is the address of the API in the environment of a container.
func inClusterEnv(addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("in-cluster configuration: %w", err)
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, nil
}

func (p *controlPlane) reporterLink(node, addr string) (*netfault.Link, error) {
	if history.ThroughLoadBalancer(p.shape.Connectivity) {
		return p.frontUnit.join("reporter of "+node, p.lb.Addr())
	}
	link := "reporter of " + node + " to " + node
	return netfault.NewLink(p.LinkHost(link), link, addr)
}

// AddNode implements cluster.Topology. A node whose API server does not get ready is gone again: nobody reads its data, or follows its logs.
func (p *controlPlane) AddNode(ctx context.Context, name string, told cluster.Encryption, _ func(context.Context) error) (*cluster.Node, error) {
	n, err := p.makeNode(ctx, name, told)
	if err != nil {
		return nil, err
	}
	if err := p.serve(ctx, name); err != nil {
		return nil, errors.Join(err, p.RemoveNode(context.WithoutCancel(ctx), n))
	}
	return n, nil
}

// serve starts the API server of a node that is added, and puts it behind the load balancer when it is ready.
func (p *controlPlane) serve(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.StartTimeout)
	defer cancel()
	server, err := p.server(name)
	if err != nil {
		return err
	}
	if err := server.Start(ctx, controlplane.Ready); err != nil {
		return err
	}
	return p.lb.Add(name, server.Info().FrontAddr)
}

func (p *controlPlane) Isolate(_ context.Context, n *cluster.Node) error {
	return p.lb.Remove(n.Name)
}

func (p *controlPlane) RemoveNode(ctx context.Context, n *cluster.Node) error {
	p.nodes.Remove(n.Name)
	err := errors.Join(n.EndPlugins(ctx), n.Server.Kill(ctx), p.cp.Servers.Remove(ctx, n.Name)) // a clean stop would drain for seconds
	n.Close()
	dropped, closing := p.links.drop(n.Name)
	for _, l := range dropped {
		p.frontUnit.leave(l)
	}
	_, streams := p.streams.drop(n.Name)
	return errors.Join(err, closing, streams)
}
