package local

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// Names by which reporters know the load balancer, and on loopback the API server of their node. Serving certificates have both.
const (
	balancerName = "kubernetes.default.svc"
	loopbackName = "localhost"
)

// names are the resolvers of reporters that know their servers by names, one for each node.
type names struct {
	p *controlPlane

	mu        sync.Mutex
	resolvers map[string]*netfault.Resolver
}

// join gives a reporter a name for an address (host:port): the name with the port, and the files of its resolver in a mount namespace of its own.
func (ns *names) join(node, addr string) (server string, mounts []mount, err error) {
	fail := func(err error) (string, []mount, error) {
		return "", nil, fmt.Errorf("resolver of the reporter of %s: %w", node, err)
	}
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fail(err)
	}
	r, err := openResolver(at.Addr())
	if err != nil {
		return fail(err)
	}
	ns.mu.Lock()
	ns.resolvers[node] = r
	ns.mu.Unlock()
	host, _, err := net.SplitHostPort(r.Addr())
	if err != nil {
		return fail(err)
	}
	// Go's defaults are two attempts of 5 s, for intervals of 30 s: a write has 10 s. Here it has one.
	for name, text := range map[string]string{
		"resolv.conf": "nameserver " + host + "\noptions timeout:1 attempts:1\n",
		"hosts":       "127.0.0.1 " + loopbackName + "\n",
	} {
		file := filepath.Join(ns.p.dir, name+"-"+node)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return fail(err)
		}
		mounts = append(mounts, mount{file, "/etc/" + name})
	}
	name := loopbackName
	if history.ThroughLoadBalancer(ns.p.shape.connectivity) {
		name = balancerName
	}
	return net.JoinHostPort(name, fmt.Sprint(at.Port())), mounts, nil
}

// openResolver is at port 53 of a loopback address of its own, because resolv.conf has addresses without ports.
func openResolver(answer netip.Addr) (r *netfault.Resolver, err error) {
	for range claims {
		r, err = netfault.NewResolver(net.JoinHostPort(anyLoopback(), "53"), balancerName, answer)
		if !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return r, err
}

// set puts a fault of a node's resolver in force, or ends it.
func (ns *names) set(node, state string) error {
	ns.mu.Lock()
	r := ns.resolvers[node]
	ns.mu.Unlock()
	lookups := map[string]netfault.Lookups{history.LinkCut: netfault.Lost, history.LinkServFail: netfault.ServFail, history.LinkNXDomain: netfault.NXDomain}
	at, err := netip.ParseAddrPort(ns.p.link(node).Addr())
	if err != nil {
		return err
	}
	if state != history.LinkStale {
		r.Set(lookups[state], at.Addr())
		return nil
	}
	stale := r.Address()
	r.Set(netfault.Answered, stale)
	if at.Addr() != stale {
		return nil // it has moved already
	}
	return ns.moveBalancer(node, at.Port())
}

// moveBalancer gives the load balancer another address for the reporter of a node, at the same port, and ends the connections to the old one.
func (ns *names) moveBalancer(node string, port uint16) error {
	p := ns.p
	old := p.link(node)
	link, err := p.frontUnit.joinAt(old.Name(), net.JoinHostPort(anyLoopback(), fmt.Sprint(port)), p.lb.Addr())
	if err != nil {
		return fmt.Errorf("move the load balancer: %w", err)
	}
	p.mu.Lock()
	p.links[node] = link
	p.mu.Unlock()
	p.frontUnit.leave(old)
	return old.Close()
}

// leave ends the resolver of a node.
func (ns *names) leave(node string) error {
	ns.mu.Lock()
	r := ns.resolvers[node]
	delete(ns.resolvers, node)
	ns.mu.Unlock()
	return r.Close()
}

func (ns *names) close() error {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	var errs []error
	for _, r := range ns.resolvers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
