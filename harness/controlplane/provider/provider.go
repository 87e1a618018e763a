// Package provider runs tests that are written with sigs.k8s.io/e2e-framework on a control plane of processes instead
// of kind: no container engine, ready in seconds.
//
// It implements e2e-framework's interface of a cluster provider, with nodes, and a load balancer in front of the API
// servers. It has no kubelets (pods never run), plugins, reporters or faults; harness/backend/local has the last three.
package provider

import (
	"context"
	"errors"
	"fmt"
	"net"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/provider"
)

// Config is what a cluster looks like, and the file of CreateWithConfig.
type Config struct {
	// ControlPlanes is how many API servers there are, cp-1 … cp-n: 1 (default) to 7.
	ControlPlanes int `json:"controlPlanes,omitempty"`
	// APIServerArgs are further flags of each.
	APIServerArgs []string `json:"apiServerArgs,omitempty"`
	// Progress receives one line at a time about what takes more than a moment; nil: silence.
	Progress func(string) `json:"-"`
}

// maxControlPlanes needs 2 GB of memory.
const maxControlPlanes = 7

func (c Config) validate() error {
	if c.ControlPlanes < 1 || c.ControlPlanes > maxControlPlanes {
		return fmt.Errorf("controlPlanes is %d, expected 1 to %d", c.ControlPlanes, maxControlPlanes)
	}
	return nil
}

// ControlPlanes is an option: how many API servers there are.
func ControlPlanes(n int) support.ClusterOpts {
	return provider.With(func(c *Config) { c.ControlPlanes = n })
}

// APIServerArgs is an option: further flags of every API server.
func APIServerArgs(args ...string) support.ClusterOpts {
	return provider.With(func(c *Config) { c.APIServerArgs = args })
}

// Progress is an option: it receives one line at a time about what takes more than a moment.
func Progress(to func(string)) support.ClusterOpts {
	return provider.With(func(c *Config) { c.Progress = to })
}

// Provider is one cluster of e2e-framework.
type Provider struct {
	*provider.Provider[*cluster, Config]
}

var _ support.E2EClusterProviderWithLifeCycle = (*Provider)(nil)

// NewProvider has the defaults of Config. It starts nothing before Create. WithPath takes etcd and kube-apiserver from a directory, instead of looking
// for them (see assets.Ensure).
func NewProvider() support.E2EClusterProvider {
	p := &Provider{}
	p.Provider = provider.New(p, Config{ControlPlanes: 1}, Config.validate, create)
	return p
}

// ControlPlane gives access to what e2e-framework has no words for: links, certificates, encryption. It is nil before Create.
func (p *Provider) ControlPlane() *controlplane.ControlPlane {
	if p.Cluster() == nil {
		return nil
	}
	return p.Cluster().ControlPlane
}

// States of a node in ListNode.
const (
	StateRunning = "running"
	StateStopped = "stopped"
)

// AddNode starts another API server of the node's name, and returns when it is ready.
func (p *Provider) AddNode(ctx context.Context, node *support.Node, _ ...string) error {
	if err := p.Do("add a node", func(c *cluster) error { return c.add(node.Name) }); err != nil {
		return err
	}
	return p.StartNode(ctx, node)
}

// RemoveNode stops the node's API server for good.
func (p *Provider) RemoveNode(ctx context.Context, node *support.Node, _ ...string) error {
	return p.Do("remove a node", func(c *cluster) error {
		if _, err := c.Server(node.Name); err != nil {
			return err
		}
		return errors.Join(c.balancer.Remove(node.Name), c.Remove(ctx, node.Name))
	})
}

// StartNode starts the node's API server unless it runs, and returns when it is ready.
func (p *Provider) StartNode(ctx context.Context, node *support.Node, _ ...string) error {
	return p.withServer("start a node", node, func(s *controlplane.APIServer) error { return s.Start(ctx, controlplane.Ready) })
}

// StopNode stops the node's API server; StartNode brings it back.
func (p *Provider) StopNode(ctx context.Context, node *support.Node, _ ...string) error {
	return p.withServer("stop a node", node, func(s *controlplane.APIServer) error { return s.Stop(ctx) })
}

func (p *Provider) withServer(verb string, node *support.Node, do func(*controlplane.APIServer) error) error {
	return p.Do(verb, func(c *cluster) error {
		s, err := c.Server(node.Name)
		if err != nil {
			return err
		}
		return do(s)
	})
}

// ListNode has one node for each API server.
func (p *Provider) ListNode(context.Context, ...string) (nodes []support.Node, err error) {
	err = p.Do("list nodes", func(c *cluster) error {
		for _, s := range c.Servers() {
			state := StateStopped
			if s.Status().Running() {
				state = StateRunning
			}
			nodes = append(nodes, support.Node{Name: s.Name, Role: "control-plane", Cluster: p.Name(), State: state, IP: net.IPv4(127, 0, 0, 1)})
		}
		return nil
	})
	return nodes, err
}
