package kind

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

// keepAddresses keeps the addresses of nodes that lost their power, beside those that are kept already.
func (p *plane) keepAddresses(ctx context.Context, nodes []*live.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	if p.kept == nil {
		network, err := networkOf(ctx, p.container(nodes[0].Name))
		if err != nil {
			return err
		}
		p.kept = newAddresses(placeholders{p.cluster, p.nodeImage, network})
	}
	wanted := slices.Collect(maps.Keys(p.kept.held))
	for _, n := range nodes {
		at, err := netip.ParseAddr(p.address(n.Name))
		if err != nil {
			return fmt.Errorf("address of node %s: %w", n.Name, err)
		}
		wanted = append(wanted, at)
	}
	return p.kept.keep(ctx, wanted...)
}

// powerOn starts the containers of nodes, sorted by their addresses: each gets the lowest that is free, which is its own.
func (p *plane) powerOn(ctx context.Context, nodes []*live.Node) error {
	var all []netip.Addr
	for _, n := range nodes {
		at, err := netip.ParseAddr(p.address(n.Name))
		if err != nil {
			return fmt.Errorf("address of node %s: %w", n.Name, err)
		}
		all = append(all, at)
	}
	others := slices.Collect(maps.Keys(p.kept.held)) // of nodes that stay without power
	others = slices.DeleteFunc(others, func(at netip.Addr) bool { return slices.Contains(all, at) })
	if err := p.kept.fill(ctx, all...); err != nil {
		return err
	}
	for i, n := range nodes {
		if err := p.kept.release(ctx, all[i]); err != nil {
			return err
		}
		if err := p.startNode(ctx, n.Name); err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return p.kept.releaseAll(ctx)
	}
	return p.kept.keep(ctx, others...)
}

// startNode starts the container of a node. Certificates and the other members of etcd know the node by its address.
func (p *plane) startNode(ctx context.Context, node string) error {
	container := p.container(node)
	if _, err := docker(ctx, "start", container); err != nil {
		return fmt.Errorf("start node %s: %w", node, err)
	}
	ip, err := addressOf(ctx, container)
	if err != nil {
		return fmt.Errorf("start node %s: %w", node, err)
	}
	if was := p.address(node); ip != was {
		return fmt.Errorf("start node %s: the engine gave it the address %s, expected %s, which it had before: run the scenario while no other clusters come and go", node, ip, was)
	}
	return nil
}

// byAddress sorts nodes by their addresses as numbers: .10 comes after .9.
func byAddress(nodes []*live.Node, address func(node string) string) []*live.Node {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b *live.Node) int {
		x, errX := netip.ParseAddr(address(a.Name))
		y, errY := netip.ParseAddr(address(b.Name))
		if errX != nil || errY != nil {
			return strings.Compare(address(a.Name), address(b.Name))
		}
		return x.Compare(y)
	})
	return sorted
}
