package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
)

// Ports of a node.
const (
	portAPIServer = "6443"
	portEtcd      = "2379"
)

// rule is a rule of a node's packet filter without its target.
type rule struct {
	container string
	match     []string
}

// target says what happens to packets; empty: nothing.
func target(m netfault.Mode) ([]string, error) {
	switch m {
	case "", netfault.OK:
		return nil, nil
	case netfault.Cut:
		return []string{"-j", "DROP"}, nil
	case netfault.Reset:
		return []string{"-j", "REJECT", "--reject-with", "tcp-reset"}, nil
	}
	return nil, fmt.Errorf("mode %q cannot be had between containers: expected cut or reset", m)
}

// rulesOf are where a link can be broken: on its way out of the node of its client, if that is one, else on its way in.
func (p *plane) rulesOf(l history.Link) ([]rule, error) {
	switch {
	case l.From == history.RoleReporter && l.To == history.RoleAPIServer:
		return p.onNode(l.Node, "OUTPUT", "--dport", portAPIServer, "-m", "owner", "--uid-owner", strconv.Itoa(uidReporter))
	case l.From == history.RoleAPIServer && l.To == history.RoleEtcd:
		return p.onNode(l.Node, "OUTPUT", "-d", "127.0.0.1", "--dport", portEtcd)
	case l.From == history.RoleLoadBalancer && l.To == history.RoleAPIServer && p.lb.ip != "":
		return p.onNode(l.Node, "INPUT", "-s", p.lb.ip, "--dport", portAPIServer)
	case l.From == history.RoleAggregator && l.To == history.RoleLoadBalancer:
		return p.fromPods(), nil
	}
	return nil, fmt.Errorf("there is no link from %q to %q here: reporters go to their own API server, aggregators and clients to the load balancer", l.From, l.To)
}

func (p *plane) onNode(name, chain string, match ...string) ([]rule, error) {
	container := p.container(name)
	if container == "" {
		return nil, fmt.Errorf("there is no node %q", name)
	}
	return []rule{{container, append([]string{chain, "-p", "tcp"}, match...)}}, nil
}

// fromPods is the way of every pod to the load balancer, which is the node itself where there is none.
func (p *plane) fromPods() []rule {
	var all []rule
	for _, n := range p.nodes.List() {
		match := []string{"FORWARD", "-p", "tcp", "-d", p.lb.ip, "--dport", portAPIServer}
		if p.lb.ip == "" {
			match = []string{"INPUT", "-p", "tcp", "!", "-i", "lo", "-s", podSubnet, "--dport", portAPIServer}
		}
		all = append(all, rule{p.container(n.Name), match})
	}
	return all
}

// podSubnet is kind's default.
const podSubnet = "10.244.0.0/16"

// SetLink implements live.Plane.
func (p *plane) SetLink(ctx context.Context, l history.Link, f netfault.Fault) error {
	if l.From == fromClient {
		return p.front.Set(f)
	}
	then, err := target(f.Mode)
	if err != nil {
		return err
	}
	rules, err := p.rulesOf(l)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := history.Link{From: l.From, To: l.To, Node: l.Node}
	if old := p.broken[key]; old != nil {
		for _, r := range rules {
			if err := r.change(ctx, "-D", old); err != nil {
				return err
			}
		}
		delete(p.broken, key)
	}
	if then == nil {
		return nil
	}
	for _, r := range rules {
		if err := r.change(ctx, "-I", then); err != nil {
			return err
		}
	}
	p.broken[key] = then
	return nil
}

func (r rule) change(ctx context.Context, verb string, then []string) error {
	words := slices.Concat([]string{"iptables", "-w", verb}, r.match, then)
	if _, err := inside(ctx, r.container, nil, words...); err != nil {
		return fmt.Errorf("packet filter of %s: %w", strings.Join(r.match, " "), err)
	}
	return nil
}

// restoreLinks ends every fault of a link.
func (p *plane) restoreLinks(ctx context.Context) error {
	p.mu.Lock()
	var links []history.Link
	for l := range p.broken {
		links = append(links, l)
	}
	p.mu.Unlock()
	errs := []error{p.front.Set(netfault.Fault{})}
	for _, l := range links {
		errs = append(errs, p.SetLink(ctx, l, netfault.Fault{}))
	}
	return errors.Join(errs...)
}
