package provider

import (
	"context"
	"errors"
	"fmt"
	"net"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/controlplane"
)

// States of a node in ListNode.
const (
	StateRunning = "running"
	StateStopped = "stopped"
)

// AddNode starts another API server of the node's name, and returns when it is ready.
func (p *Provider) AddNode(ctx context.Context, node *support.Node, _ ...string) error {
	if p.cp == nil {
		return p.notCreated("add a node")
	}
	if err := p.add(node.Name); err != nil {
		return fmt.Errorf("cluster %s: %w", p.name, err)
	}
	return p.StartNode(ctx, node)
}

// RemoveNode stops the node's API server for good.
func (p *Provider) RemoveNode(ctx context.Context, node *support.Node, _ ...string) error {
	if p.cp == nil {
		return p.notCreated("remove a node")
	}
	if _, err := p.cp.Server(node.Name); err != nil {
		return fmt.Errorf("cluster %s: %w", p.name, err)
	}
	if err := errors.Join(p.balancer.Remove(node.Name), p.cp.Remove(ctx, node.Name)); err != nil {
		return fmt.Errorf("cluster %s: %w", p.name, err)
	}
	return nil
}

// StartNode starts the node's API server unless it runs, and returns when it is ready.
func (p *Provider) StartNode(ctx context.Context, node *support.Node, _ ...string) error {
	return p.withServer("start a node", node, func(s *controlplane.APIServer) error { return s.Start(ctx, controlplane.Ready) })
}

// StopNode stops the node's API server; StartNode brings it back.
func (p *Provider) StopNode(ctx context.Context, node *support.Node, _ ...string) error {
	return p.withServer("stop a node", node, func(s *controlplane.APIServer) error { return s.Stop(ctx) })
}

// ListNode has one node for each API server.
func (p *Provider) ListNode(context.Context, ...string) ([]support.Node, error) {
	if p.cp == nil {
		return nil, p.notCreated("list nodes")
	}
	var nodes []support.Node
	for _, s := range p.cp.Servers() {
		state := StateStopped
		if s.Running() {
			state = StateRunning
		}
		nodes = append(nodes, support.Node{
			Name: s.Name(), Role: "control-plane", Cluster: p.name, State: state, IP: net.IPv4(127, 0, 0, 1),
		})
	}
	return nodes, nil
}

func (p *Provider) withServer(verb string, node *support.Node, do func(*controlplane.APIServer) error) error {
	if p.cp == nil {
		return p.notCreated(verb)
	}
	s, err := p.cp.Server(node.Name)
	if err == nil {
		err = do(s)
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", p.name, err)
	}
	return nil
}
