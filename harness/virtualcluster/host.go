package virtualcluster

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
)

// administrator is the user of Host.Config.
const administrator = "system:admin"

// Host is a machine on the network of a cluster, on which programs of the test run.
type Host struct {
	cluster *Cluster
	name    string
}

// Host is the machine of a name, which need not be there yet. A program that is to fail alone has a host of its own.
func (c *Cluster) Host(name string) *Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts[name] = true
	return &Host{c, name}
}

// knows is an error for a name that no host has.
func (c *Cluster) knows(names ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if !c.hosts[name] {
			return fmt.Errorf("host %q: expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(c.hosts)), ", "))
		}
	}
	return nil
}

// Dial connects, as net.Dialer does. network is "tcp" or "unix"; a dial that nothing answers ends after 30 s.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return h.cluster.network.Host(h.name).Dial(ctx, network, address)
}

// Listen listens, as net.Listen does, at HOST:PORT or, with the network "unix", at a path below Cluster.Dir. The socket's file is real, and stays when
// the listener is closed.
func (h *Host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return h.cluster.network.Host(h.name).Listen(ctx, network, address)
}

// Config is for clients of an API server, or of LoadBalancer, as the user system:admin, who may do everything. They are not rate-limited.
func (h *Host) Config(apiServer string) (*rest.Config, error) {
	return h.ConfigAs(apiServer, administrator, user.SystemPrivilegedGroup)
}

// ConfigAs is Config for another user, who may do what roles and bindings in the cluster allow.
func (h *Host) ConfigAs(apiServer, user string, groups ...string) (*rest.Config, error) {
	c := h.cluster
	address := c.balancer.Addr()
	if apiServer != LoadBalancer {
		if _, err := c.server(apiServer); err != nil {
			return nil, fmt.Errorf("configure a client of %s: %w", h.name, err)
		}
		address = apiServer + securePort
	}
	config, err := c.identities.Authority.RESTConfig(user, groups, "https://"+address)
	if err != nil {
		return nil, fmt.Errorf("configure a client of %s: %w", h.name, err)
	}
	config.Dial = h.Dial
	config.Wrap(c.network.Wrap(h.name))
	return config, nil
}
